"""The context of a conversation over HTTP, and its summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import began, ended, got, said, sent
from moot.testing.script import Reply
from moot.types.agent import Agent, HistorySettings

pytestmark = pytest.mark.anyio

SCRIPT = [Reply(when="Write the summary", text="They like fish.", times=0), Reply(text="Sure.", times=0)]
KEEP_ONE = {"default": Agent(tools=(), history=HistorySettings(keep=1))}


async def test_a_summary_is_listed_changed_and_withdrawn(open_server: Callable[..., Any]) -> None:
    async with open_server(SCRIPT, agents=KEEP_ONE) as server:
        server: LiveServer
        path = f"/api/conversations/{(id := (await began(server))['id'])}"
        for text in ("I like fish", "and cats"):
            await ended(server, await said(server, id, text))
        done = await sent(server.client, "POST", "/api/commands/compact", {"conversation": id, "argument": "cats"})
        assert "Compacted" in done["replies"][0]["text"]
        (one,) = (await got(server.client, f"{path}/compactions"))["data"]
        assert one["summary"] == "They like fish." and one["exchange"]
        changed = await sent(server.client, "PATCH", f"{path}/compactions/{one['through']}", {"summary": "Fish and cats."})
        assert changed["exchange"] is None and changed["seq"] > one["seq"]
        context = await got(server.client, f"{path}/context?request=true&prompt=hello")
        texts = [message["content"] for message in context["request"]["messages"]]
        assert "Fish and cats." in texts[1] and texts[-1] == "hello"
        assert context["share"] == pytest.approx(context["tokens"] / context["window"], abs=0.001)
        assert (await got(server.client, f"{path}/context"))["request"] is None
        async with server.client.patch(f"{path}/compactions/{one['through']}", json={"summary": " "}) as answer:
            assert answer.status == 422
        async with server.client.delete(f"{path}/compactions/{one['through']}") as answer:
            assert answer.status == 200
        for call in (server.client.delete, server.client.patch):
            async with call(f"{path}/compactions/{one['through']}", json={"summary": "x"}) as answer:
                assert answer.status == 404
        assert (await got(server.client, f"{path}/compactions"))["data"] == []
