"""Setting up a search engine over HTTP: tested before it is saved, and a key is sent only where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import got, sent
from moot.types.ids import new_id
from search_engine import SearchEngine, search_engine

pytestmark = pytest.mark.anyio

AT = "/api/web-search"
KEY = "key-with-${HOME}-0123"
FOUND = [{"title": "The weather", "url": "https://weather.example/", "content": "Rain", "description": "Rain"}]


@pytest.fixture
def engine() -> Iterator[SearchEngine]:
    with search_engine() as engine:
        engine.answer = {"results": FOUND, "web": {"results": FOUND}}
        yield engine


async def refused(server: LiveServer, body: Any, *words: str) -> Any:
    """Send settings that are refused, and check that nothing was saved. Return the problem."""
    before = server.engine.runtime.settings.tools.get("web_search")
    async with server.client.put(AT, json=body) as answer:
        problem = await answer.json()
    assert answer.status >= 400 and all(word in str(problem) for word in words), problem
    assert not body.get("api_key") or body["api_key"] not in str(problem)
    assert server.engine.runtime.settings.tools.get("web_search") == before
    return problem


async def test_a_search_engine_is_tested_then_saved_and_removed(server: LiveServer, engine: SearchEngine) -> None:
    client, file = server.client, server.engine.settings.home / "config.yaml"
    nothing = {"provider": "", "base_url": "", "key": "", "is_available": False, "is_saved": False}
    assert await got(client, AT) == nothing and not (await got(client, "/api/session"))["searches_web"]
    body = {"provider": "brave", "api_key": KEY, "base_url": engine.url}
    tried = await sent(client, "PUT", AT, body)
    assert tried["query"] in engine.asked[0][0]
    assert tried["results"] == [{"title": "The weather", "url": "https://weather.example/", "snippet": "Rain"}]
    assert engine.asked[0][1]["X-Subscription-Token"] == KEY
    assert server.engine.runtime.settings.tools["web_search"] == body and file.stat().st_mode & 0o777 == 0o600
    shown = await got(client, AT)
    assert (shown["provider"], shown["base_url"], shown["is_available"], shown["is_saved"]) == ("brave", engine.url, True, True)
    assert str(file) in shown["key"] and (await got(client, "/api/session"))["searches_web"]
    for path in (AT, "/api/config", "/api/tools/web_search"):
        async with client.get(path) as answer:
            assert KEY not in await answer.text()
    async with client.delete(AT) as answer:
        assert answer.status == 204
    assert await got(client, AT) == nothing and KEY not in file.read_text()
    async with client.delete(AT) as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"provider": "brave"}, "api_key of brave is required"),
        ({"provider": "searxng"}, "base_url of the searxng server is required"),
        ({"provider": "custom", "base_url": "http://127.0.0.1:1/"}, "must contain {query}"),
        ({"provider": "brave", "api_key": "two words"}, "api_key"),
        ({"provider": "searxng", "base_url": "ftp://127.0.0.1/"}, "base_url"),
        ({"provider": "other"}, "provider"),
        ({"provider": "searxng", "base_url": "http://127.0.0.1:1"}, "127.0.0.1"),
    ],
)
async def test_unusable_settings_are_not_saved(server: LiveServer, body: Any, problem: str) -> None:
    await refused(server, body, problem)


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, {"error": "no access with wrong-key-0123456789"}, ["status 401", "no access with", "Check the key."]),
        (403, {}, ["status 403", "search.formats"]),
        (200, {"results": []}, ["found nothing"]),
        (200, {"other": []}, ["no list of results"]),
    ],
)
async def test_settings_with_which_a_search_fails_are_not_saved(
    server: LiveServer, engine: SearchEngine, status: int, answer: Any, words: list[str]
) -> None:
    engine.status, engine.answer = status, answer
    problem = await refused(server, {"provider": "searxng", "api_key": "wrong-key-0123456789", "base_url": engine.url}, *words)
    assert problem["status"] == 422 and problem["code"] == "search_failed"
    assert not (server.engine.settings.home / "config.yaml").exists()


async def test_a_stored_key_is_not_sent_to_another_address_or_provider(server: LiveServer, engine: SearchEngine) -> None:
    await sent(server.client, "PUT", AT, {"provider": "brave", "api_key": KEY, "base_url": engine.url})
    await sent(server.client, "PUT", AT, {"provider": "brave", "base_url": f"{engine.url}/"})
    assert [asked[1]["X-Subscription-Token"] for asked in engine.asked] == [KEY, KEY], "it is kept if nothing else changes"
    with search_engine() as other:
        other.answer = engine.answer
        await refused(server, {"provider": "brave", "base_url": other.url}, "api_key of brave is required")
        await refused(server, {"provider": "brave"}, "api_key of brave is required")
        await refused(server, {"provider": "tavily", "base_url": engine.url}, "api_key of tavily is required")
        assert not other.asked and len(engine.asked) == 2
        await sent(server.client, "PUT", AT, {"provider": "searxng", "base_url": other.url})
        assert KEY not in str(other.asked) and "Authorization" not in other.asked[0][1]
    assert not server.engine.runtime.settings.tools["web_search"]["api_key"]
    assert KEY not in (server.engine.settings.home / "config.yaml").read_text()


async def test_settings_from_the_environment_are_not_overridden(open_server: Callable[..., Any], engine: SearchEngine) -> None:
    environ = {"MOOT_TOOLS__WEB_SEARCH__API_KEY": KEY}
    async with open_server(environ=environ) as server:
        await sent(server.client, "PATCH", "/api/config", {"values": {"limits.steps": 7}})  # loads the variable
        body = {"provider": "searxng", "base_url": engine.url}
        await refused(server, body, "MOOT_TOOLS__WEB_SEARCH__API_KEY", "Change it there.")
        assert not engine.asked


async def test_only_the_owner_of_the_home_sees_the_place_of_the_key_and_changes_it(server: LiveServer, engine: SearchEngine) -> None:
    body = {"provider": "searxng", "api_key": KEY, "base_url": engine.url}
    await sent(server.client, "PUT", AT, body)
    async with server.caller(scopes=["read"], owner="somebody") as reader:
        shown = await got(reader, AT)
        assert shown["is_available"] and (shown["key"], shown["base_url"]) == ("", "")
        assert (await reader.put(AT, json=body)).status == (await reader.delete(AT)).status == 403
    async with server.caller(scopes=["admin"]) as admin:
        assert (await admin.put(AT, json=body)).status == (await admin.delete(AT)).status == 403


async def test_the_first_prompt_of_a_conversation_can_turn_the_search_off(open_server: Callable[..., Any], engine: SearchEngine) -> None:
    tools = {"web_search": {"provider": "searxng", "base_url": engine.url}}
    async with open_server(tools=tools) as server:
        for wanted in (None, False):
            id = new_id()
            message = {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
            async with server.client.post("/api/chat", json={"id": id, "message": message, "web_search": wanted}) as answer:
                assert answer.status == 200 and "[DONE]" in await answer.text()
            offered = {tool["function"]["name"] for tool in server.model.requests[-1].json["tools"]}
            assert ("web_search" in offered) is (wanted is None)
            stored = (await got(server.client, f"/api/conversations/{id}"))["settings"]
            assert stored == ({} if wanted is None else {"web_search": False}), "it applies to the next prompts too"
