"""Replay of an answer's stream over HTTP."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from moot.types.chunk import problems
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio


async def said(server: LiveServer, text: str) -> str:
    submitted = await server.engine.runs.submit(Prompt((text_part(text),), directory=str(server.directory)))
    await server.engine.runs.wait(submitted.run.id)
    return submitted.conversation.id


async def frames(server: LiveServer, path: str) -> list[tuple[str, Any]]:
    async with server.client.get(path) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        blocks = [block.split("\n") for block in (await answer.text()).split("\n\n") if block and not block.startswith(":")]
    assert blocks[-1] == ["data: [DONE]"]
    fields = [dict(line.split(": ", 1) for line in block) for block in blocks[:-1]]
    return [(field.get("id", ""), json.loads(field["data"])) for field in fields]


async def test_a_replay_sends_the_original_stream(server: LiveServer) -> None:
    id = await said(server, "hi")
    found = await frames(server, f"/api/conversations/{id}/replay?speed=0")
    chunks = [chunk for _, chunk in found]
    assert (chunks[0]["type"], chunks[-1]["type"]) == ("start", "finish")
    assert "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta") == "Hello there."
    assert [problem for chunk in chunks for problem in problems(chunk, 6)] == []
    places = [tuple(map(int, id.split("."))) for id, _ in found]
    assert places == sorted(places)


async def test_a_replay_starts_at_the_requested_position(server: LiveServer) -> None:
    id = await said(server, "hi")
    whole = await frames(server, f"/api/conversations/{id}/replay?speed=0")
    seq = int(whole[-3][0].split(".")[0])
    part = await frames(server, f"/api/conversations/{id}/replay?speed=0&from={seq}")
    assert part == [one for one in whole if int(one[0].split(".")[0]) >= seq]


async def test_a_replay_keeps_the_original_timing_and_ends_when_the_client_disconnects(server: LiveServer) -> None:
    id = await said(server, "hi")
    with anyio.move_on_after(0.5) as over:
        async with server.client.get(f"/api/conversations/{id}/replay?speed=0.01") as answer:
            await answer.read()
    assert over.cancelled_caught
    assert (await server.engine.store.log.last_seq(id)) > 0


async def test_a_prompt_without_an_answer_returns_404(server: LiveServer) -> None:
    async with server.client.post("/api/conversations", json={}) as answer:
        id = (await answer.json())["id"]
    async with server.client.get(f"/api/conversations/{id}/replay") as answer:
        assert (answer.status, (await answer.json())["code"]) == (404, "not_found")
    async with server.client.get(f"/api/conversations/{id}/replay?speed=-1") as answer:
        assert answer.status in (400, 422)


async def test_conversations_are_compared_unless_one_belongs_to_another_user(server: LiveServer) -> None:
    one, two = await said(server, "hi"), await said(server, "hi")
    async with server.client.get(f"/api/conversations/{one}/compare?with={two}") as answer:
        found = await answer.json()
    assert (answer.status, found["same"], len(found["pairs"])) == (200, True, 1)
    assert (found["a"]["id"], found["b"]["id"], found["pairs"][0]["a"]["text"]) == (one, two, "Hello there.")
    async with server.caller(owner="mara") as other, other.get(f"/api/conversations/{one}/compare?with={two}") as answer:
        assert answer.status == 404
