"""The OpenAPI description is correct, complete and committed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator

from e2e.server.conftest import LiveServer
from moot.server.app import routed
from moot.server.auth import PUBLIC, Route, needed
from moot.server.routes.documentation import routes_of, specification
from moot.types.canonical import JsonObject

DESCRIPTION: Any = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text(encoding="utf-8"))
PATHS, COMPONENTS = DESCRIPTION["paths"], DESCRIPTION["components"]
OPERATIONS = [(path, method, cast("JsonObject", told)) for path, item in PATHS.items() for method, told in item.items()]
NAMES = [f"{method.upper()} {path}" for path, method, _ in OPERATIONS]
IMAGINED = "0190a5a0-0000-7000-8000-000000000000"


def test_the_committed_description_matches_the_routes(repository: Path) -> None:
    kept = json.loads((repository / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert kept == specification(routed()), "run python docs/generate.py"


def test_every_route_is_described_and_nothing_else() -> None:
    routes = {(context.path_format, method) for context in routes_of(routed()) for method in context.methods or ()}
    assert routes == {(path, method.upper()) for path, method, _ in OPERATIONS}


def test_every_route_requires_exactly_one_scope_or_is_public() -> None:
    for context in routes_of(routed()):
        route = cast("APIRoute", context.original_route)
        for method in context.methods or ():
            public = (method, context.path_format) in PUBLIC
            assert (needed(route.dependant) is None) == public, f"{method} {context.path_format}"


def test_every_route_parses_bodies_strictly() -> None:
    # a plain APIRouter accepts duplicate keys and NaN, so all routers must be `moot.server.auth.Router`
    assert [context.path for context in routes_of(routed()) if not isinstance(context.original_route, Route)] == []


def test_every_operation_has_a_unique_id_and_a_summary() -> None:
    names = [str(told["operationId"]) for _, _, told in OPERATIONS]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    for path, method, told in OPERATIONS:
        assert told["summary"], f"{method} {path} has no docstring"
        assert told.get("tags"), f"{method} {path} has no tag"


@pytest.mark.parametrize(("path", "method", "told"), OPERATIONS, ids=NAMES)
def test_every_response_is_described(path: str, method: str, told: Any) -> None:
    good = [answer for status, answer in told["responses"].items() if status.startswith(("2", "3"))]
    assert good
    assert "204" in told["responses"] or any(content for answer in good for content in answer.get("content", {}).values()), (
        "give it a response model, or `responses={200: {'content': …}}` where it sends something else than JSON"
    )


def media(told: Any) -> list[tuple[str, Any]]:
    """Return the bodies of an operation and of its successful responses, each with its media type."""
    good = [answer for status, answer in told["responses"].items() if status.startswith("2")]
    return [one for place in (told.get("requestBody", {}), *good) for one in place.get("content", {}).items()]


@pytest.mark.parametrize(("path", "method", "told"), OPERATIONS, ids=NAMES)
def test_every_operation_has_valid_examples(path: str, method: str, told: Any) -> None:
    for kind, content in media(told):
        assert ("example" in content) == (kind in ("application/json", "text/event-stream", "text/plain")), kind
        if "example" in content:
            Draft202012Validator({**content["schema"], "components": COMPONENTS}).validate(content["example"])
    for parameter in told.get("parameters", []):
        assert ("example" in parameter) == parameter["required"], parameter["name"]


def test_the_examples_of_bodies_are_accepted() -> None:
    checked = 0
    for context in routes_of(routed()):
        route = cast("APIRoute", context.original_route)
        for method in context.methods or ():
            content = PATHS[context.path_format][method.lower()].get("requestBody", {}).get("content", {})
            if route.body_field is not None and "application/json" in content:
                _, errors = route.body_field.validate(content["application/json"]["example"])
                assert not errors, f"{method} {context.path_format}"
                checked += 1
    assert checked > 40


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"])
async def test_answers_have_the_described_format(server: LiveServer, path: str) -> None:
    operation = PATHS[path]["post"]
    body = operation["requestBody"]["content"]["application/json"]["example"]
    answer = await server.client.post(path, json={**body, "model": "agent:default"})
    assert answer.status == 200, await answer.text()
    described = operation["responses"]["200"]["content"]["application/json"]
    found = await answer.json()
    Draft202012Validator(described["schema"]).validate(found)
    assert described["example"].keys() <= found.keys()


@pytest.mark.anyio
async def test_the_list_of_models_has_the_described_format(server: LiveServer) -> None:
    described = PATHS["/v1/models"]["get"]["responses"]["200"]["content"]["application/json"]
    found = await (await server.client.get("/v1/models")).json()
    Draft202012Validator(described["schema"]).validate(found)
    assert found["data"] and described["example"]["data"][0].keys() == found["data"][0].keys()


@pytest.mark.anyio
async def test_only_public_operations_work_without_a_token(server: LiveServer) -> None:
    async with server.stranger() as stranger:
        for path, method, _ in OPERATIONS:
            answer = await stranger.request(method, re.sub(r"\{[^}]*\}", IMAGINED, path))
            public = (method.upper(), path) in PUBLIC
            if path == "/api/webhooks/{name}":  # public, but every webhook checks a secret of its own
                assert answer.status == 401 and "No token" not in await answer.text()
                continue
            assert (answer.status == 401) != public, f"{method} {path}: {answer.status}"
            if path.startswith("/v1/"):
                assert "No token" in (await answer.json())["error"]["message"], f"{method} {path}"
            elif not public and method != "head":  # responses to HEAD have no body
                told = await answer.json(content_type="application/problem+json")
                assert told["code"] == "unauthorized", f"{method} {path}"


@pytest.mark.anyio
async def test_a_running_server_serves_the_same_description(server: LiveServer) -> None:
    answer = await server.client.get("/openapi.json")
    assert await answer.json() == specification(routed())


@pytest.mark.anyio
async def test_the_documentation_page_loads_nothing_from_other_servers(server: LiveServer) -> None:
    async with server.stranger() as stranger:
        page = await (await stranger.get("/docs")).text()
        files = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert files and all(file.startswith("/") and not file.startswith("//") for file in files)
        for file in files:
            answer = await stranger.get(file)
            assert answer.status == (401 if file == "/openapi.json" else 200), file
            text = (await answer.text()).replace('xmlns="http://www.w3.org/2000/svg"', "")  # a namespace, which is never fetched
            assert "http:" not in text and "https:" not in text
