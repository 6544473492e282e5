"""Searching the web in a conversation: when it is offered, and the sources of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.message import is_tool, text_of
from search_engine import SearchEngine, search_engine

pytestmark = pytest.mark.anyio

PAGES = [{"title": f"Page {number}", "url": f"https://example.com/{number}", "content": f"About {number}"} for number in range(1, 4)]
ASKED = "turned on web search"
"""Part of the instruction that asks the model to search."""


@pytest.fixture
def engine() -> Iterator[SearchEngine]:
    with search_engine() as engine:
        engine.answer = {"results": PAGES}
        yield engine


def tools(engine: SearchEngine) -> dict[str, Any]:
    return {"web_search": {"provider": "searxng", "base_url": engine.url}}


def offered(recorded: Recorded) -> set[str]:
    return {tool["function"]["name"] for tool in recorded.json.get("tools", [])} & {"web_search", "fetch_url"}


def searching(*steps: list[ToolCall]) -> Any:
    """A model that makes these calls, step by step, and then answers."""

    def script(recorded: Recorded) -> Reply:
        done = sum(message["role"] == "assistant" for message in recorded.messages)
        return Reply(tool_calls=steps[done]) if done < len(steps) else Reply(text="It is so [1], and so [3].")

    return script


def sources(message: Any) -> list[Any]:
    return [part for part in message.parts if part["type"] == "source-url"]


@pytest.mark.parametrize("setting", [None, True, False])
async def test_the_conversation_decides_whether_to_search(stage: Any, engine: SearchEngine, setting: bool | None) -> None:
    async with stage([Reply(text="Hi."), Reply(text="Hi again.")], tools=tools(engine)) as on:
        run, _ = await on.ask("Hi")
        assert offered(on.server.requests[-1]) == {"web_search", "fetch_url"} and ASKED not in str(on.server.requests[-1].messages)
        await on.engine.store.conversations.update(run.conversation, settings={"web_search": setting})
        await on.ask("Hi again", conversation=run.conversation)
        assert offered(on.server.requests[-1]) == ({"fetch_url"} if setting is False else {"web_search", "fetch_url"})
        assert (ASKED in str(on.server.requests[-1].messages)) is (setting is True)


async def test_an_agent_with_other_tools_can_search_if_it_is_turned_on(stage: Any, engine: SearchEngine) -> None:
    async with stage([Reply(text="Hi."), Reply(text="Hi.")], tools=tools(engine)) as on:
        run, _ = await on.ask("Hi", settings={"tools": ["read_file"], "web_search": True})
        assert offered(on.server.requests[-1]) == {"web_search", "fetch_url"}
        await on.engine.store.conversations.update(run.conversation, settings={"web_search": True})
        await on.ask("Hi", conversation=run.conversation, settings={"tools": ["read_file"]})
        assert offered(on.server.requests[-1]) == set(), "a prompt's own list of tools is complete"


async def test_without_a_search_provider_nothing_is_asked_of_the_model(stage: Any) -> None:
    async with stage([Reply(text="Hi.")]) as on:
        await on.ask("Hi", settings={"web_search": True})
        assert offered(on.server.requests[-1]) == {"fetch_url"} and ASKED not in str(on.server.requests[-1].messages)


async def test_results_become_numbered_sources_once_per_page(stage: Any, engine: SearchEngine) -> None:
    first, both = ToolCall("web_search", {"query": "a", "count": 1}), ToolCall("web_search", {"query": "b", "count": 3})
    again = ToolCall("web_search", {"query": "c", "count": 2})
    async with stage(searching([first], [both, again]), tools=tools(engine)) as on:
        run, message = await on.ask("Search")
        assert run.status == "finished" and text_of(message.parts) == "It is so [1], and so [3]."
        found = sources(message)
        assert [(part["url"], part["title"]) for part in found] == [(page["url"], page["title"]) for page in PAGES]
        assert len({part["sourceId"] for part in found}) == 3
        outputs = [part["output"] for part in message.parts if is_tool(part)]
        assert outputs[0] == "[1] Page 1\n   https://example.com/1\n   About 1"
        for output in outputs[1:]:
            lines = [line for line in output.splitlines() if line.startswith("[")]
            assert lines == [f"[{number}] Page {number}" for number in range(1, len(lines) + 1)]
        events = await on.engine.store.log.read(run.conversation)
        written = [piece["url"] for event in events for piece in event.chunks if piece["type"] == "source-url"]
        assert sorted(written) == [page["url"] for page in PAGES]
        assert await on.engine.store.conversations.message(message.id) == message


async def test_a_page_that_is_fetched_is_a_source_unless_it_fails(stage: Any, engine: SearchEngine) -> None:
    engine.raw = b"plain text"
    port = int(engine.url.rpartition(":")[2])
    allowed = {"fetch_url": {"allow": ["127.0.0.0/8"], "ports": [port]}}
    call = ToolCall("fetch_url", {"url": f"{engine.url}/page"})
    async with stage(searching([call], [call]), tools=allowed) as on:
        _, message = await on.ask("Read")
        assert [part["url"] for part in sources(message)] == [f"{engine.url}/page"]
        assert all(part["output"].startswith(f"[1] {engine.url}/page (200") for part in message.parts if is_tool(part))
        engine.status = 500
        _, failed = await on.ask("Read")
        assert not sources(failed)


async def test_sub_agents_do_not_search_if_it_is_turned_off(stage: Any, engine: SearchEngine) -> None:
    agents = {"default": Agent(agents=("helper",)), "helper": Agent("helper", tools=("web_search", "read_file"))}
    task = ToolCall("delegate", {"agent": "helper", "prompt": "find out"})
    script = [Reply(when="ask", tool_calls=[task]), Reply(when="find out", text="Found."), Reply(when="ask", text="Done.")]
    async with stage(script, tools=tools(engine), agents=agents) as on:
        run, _ = await on.ask("ask", settings={"web_search": False})
        assert len(await on.engine.store.records.children(run.id)) == 1 and len(on.server.requests) == 3
        assert all("web_search" not in offered(request) for request in on.server.requests)
