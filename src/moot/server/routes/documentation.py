"""The OpenAPI description of all operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from moot import __version__
from moot.server.auth import FOREIGN, Reader, Router, needed
from moot.server.problems import MEDIA_TYPE
from moot.types.canonical import JsonObject, dumps

_ABOUT = """One home for every AI agent's conversations.

Send `Authorization: Bearer …` with a token of `moot tokens create NAME`. Scopes: `read`, `chat` (holds read), `tools` (holds chat),
`admin` (holds all). Lists come by pages: `limit`, and `next_cursor` as the next page's `cursor`. Every error is a problem of RFC 9457
with a `code`, a `fix` and the `request_id` that the server's log has. A POST with an `Idempotency-Key` is done once, and its answer is
given again for a day."""

_SCHEMES: JsonObject = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of `moot tokens create NAME`."},
    "browser": {"type": "apiKey", "in": "cookie", "name": "moot_session", "description": "What `POST /api/login` gives a browser."},
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "The same token, below /v1 only.",
    },
}

_PROBLEM: JsonObject = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "fix", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "`urn:moot:problem:` and the code."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What, where and what was expected, for a person."},
        "code": {"type": "string", "description": "For programs; stays the same."},
        "fix": {"type": "string", "description": "The next move; empty when there is none."},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["at", "message"],
                "properties": {"at": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}

_REPEATED: JsonObject = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 characters that name this request: it is done once, and its answer given again.",
    "schema": {"type": "string", "maxLength": 255},
}

_REFUSAL: JsonObject = {
    "type": "object",
    "description": "What went wrong, as the clients of the dialect read it.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
        }
    },
}

_SHARED = ("400", "401", "403", "422", "default")


def routes_of(app: FastAPI) -> Iterator[RouteContext]:
    """Every operation of the application, with its path and methods."""
    yield from (context for context in iter_route_contexts(app.routes) if isinstance(context.original_route, APIRoute))


def specification(app: FastAPI) -> JsonObject:
    """The whole description, in an order that only changes with the routes."""
    told = cast(
        "JsonObject",
        get_openapi(title="moot", version=__version__, openapi_version="3.1.0", description=_ABOUT, routes=app.routes),
    )
    scopes = {
        (context.path_format or "", method.lower()): needed(cast("APIRoute", context.original_route).dependant)
        for context in routes_of(app)
        for method in context.methods or ()
    }
    for path, operations in _objects(told, "paths").items():
        for method, operation in cast("dict[str, JsonObject]", operations).items():
            _complete(operation, path, method, scopes[path, method])
    components = _objects(told, "components")
    schemas = {name: schema for name, schema in _objects(components, "schemas").items() if name not in _REPLACED}
    components["schemas"] = dict(sorted({**schemas, "Problem": _PROBLEM, "Refusal": _REFUSAL}.items()))
    components["responses"] = {
        "Problem": {"description": "A problem.", "content": {MEDIA_TYPE: {"schema": _reference("schemas", "Problem")}}},
        "Refusal": {
            "description": "An error in the words of the dialect; a problem when the request did not come that far.",
            "content": {
                "application/json": {"schema": _reference("schemas", "Refusal")},
                MEDIA_TYPE: {"schema": _reference("schemas", "Problem")},
            },
        },
    }
    components["securitySchemes"] = _SCHEMES
    return told


_REPLACED = ("HTTPValidationError", "ValidationError")
"""FastAPI's own errors, which no caller gets to see."""


def _complete(operation: JsonObject, path: str, method: str, scope: str | None) -> None:
    """Adds what all operations have in common."""
    told = str(operation.get("description", ""))
    first, _, rest = told.partition("\n")
    operation["summary"] = first.strip().rstrip(".")
    if rest.strip():
        operation["description"] = rest.strip()
    else:
        operation.pop("description", None)
    skipped = () if scope is not None else ("401", "403")
    kind = "Refusal" if path.startswith(FOREIGN) else "Problem"
    shared = {status: _reference("responses", kind) for status in _SHARED if status not in skipped}
    operation["responses"] = dict(sorted({**_objects(operation, "responses"), **shared}.items()))
    if scope is not None:
        schemes = ["token", "browser", *(["key"] if path.startswith(FOREIGN) else [])]
        operation["security"] = [{scheme: [scope]} for scheme in schemes]
    else:
        operation["security"] = []
    if method == "post" and scope is not None:
        operation["parameters"] = [*cast("list[Any]", operation.get("parameters", [])), _REPEATED]


def _objects(holder: JsonObject, name: str) -> JsonObject:
    """The object of that name in another, made when there is none."""
    return cast("JsonObject", holder.setdefault(name, {}))


def _reference(kind: str, name: str) -> JsonObject:
    return {"$ref": f"#/components/{kind}/{name}"}


router = Router(tags=["documentation"])


@router.get("/openapi.json", response_class=Response, responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def openapi(request: Request, _: Reader) -> Response:
    """Describes all operations, as OpenAPI 3.1; `/docs` shows it to people."""
    state = request.app.state
    if not hasattr(state, "specification"):
        state.specification = dumps(specification(request.app))
    return Response(state.specification, media_type="application/json")
