"""Interrupted and resumed streams: cut at every byte of the body, and after every frame of a live connection."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.server.conftest import FIXED, LiveServer
from e2e.server.raw import request, wire
from e2e.server.stream_calls import fold, messages, read, say
from moot.convert.unfold import unfold
from moot.testing.script import Reply
from moot.types.message import Message

pytestmark = pytest.mark.anyio

RECORDED = Path(__file__).parents[2] / "recorded" / "openai-chat"
VENDORS = ["reasoning-content", "parallel-tools", "text"]
"""Recordings of real endpoints: reasoning with text, two parallel calls, plain text."""


def recorded(name: str, **more: Any) -> list[Reply]:
    return [Reply(raw=(RECORDED / f"{name}.sse").read_bytes(), **more), Reply(text="And that is all.", chunk_size=3, times=0)]


def received(body: bytes) -> tuple[list[dict[str, Any]], str]:
    """Return the chunks of complete frames in a truncated body, and the id of the last one."""
    chunks: list[dict[str, Any]] = []
    last = ""
    for frame in body.split(b"\n\n")[:-1]:
        fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if not line.startswith(b":"))
        if fields.get(b"data", b"[DONE]") != b"[DONE]":
            chunks.append(json.loads(fields[b"data"]))
            last = fields[b"id"].decode()
    return chunks, last


async def resume(server: LiveServer, chat: str, chunks: list[dict[str, Any]], last: str) -> list[dict[str, Any]]:
    """Resume after the last frame, or load the message if there was none, and return all chunks. At the very end, nothing is left."""
    async with server.client.get(f"/api/chat/{chat}/stream", headers={"Last-Event-ID": last} if last else {}) as answer:
        if answer.status == 204:
            message = Message("m", "assistant", tuple((await messages(server, chat))[-1]["parts"]))
            return chunks if last else list(unfold(message))
        assert answer.status == 200
        return [*chunks, *(chunk for _, chunk in read(await answer.text()))]


@pytest.mark.parametrize("name", VENDORS)
async def test_a_stream_cut_at_any_byte_and_resumed_gives_the_same_message(open_server: Callable[..., Any], name: str) -> None:
    async with open_server(recorded(name)) as server:
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            body = await answer.read()
        expected = fold([chunk for _, chunk in read(body.decode())])
        rests: dict[str, list[dict[str, Any]]] = {}
        for cut in range(len(body) + 1):
            chunks, last = received(body[:cut])
            if last not in rests:
                rests[last] = await resume(server, "c1", [], last)
            assert fold([*chunks, *rests[last]]) == expected, cut
        assert len(rests) > 8


@pytest.mark.slow
@pytest.mark.parametrize("name", VENDORS[:2])
async def test_a_live_stream_cut_after_any_frame_and_resumed_gives_the_same_message(open_server: Callable[..., Any], name: str) -> None:
    async with open_server([reply for _ in range(200) for reply in recorded(name, write_size=400, delay=0.001)[:1]]) as server:
        host, bearer = f"host: {server.url.removeprefix('http://')}", f"authorization: Bearer {FIXED}"
        whole = 0
        for cut in range(200):
            chat = f"cut-{cut}"
            async with wire(server.url) as reader:
                body = json.dumps(say("hi", chat=chat, max_steps=1)).encode()
                await reader.send(request("POST", "/api/chat", host, bearer, "content-type: application/json", body=body))
                await reader.reader.readuntil(b"\r\n\r\n")
                seen, ended = await frames(reader.reader, cut + 1)
            chunks, last = received(seen)
            with anyio.fail_after(60):
                folded = fold(await resume(server, chat, chunks, last))
            stored = (await messages(server, chat))[-1]["parts"]
            assert [part["type"] for part in folded] == [part["type"] for part in stored]
            assert texts(folded) == texts(stored)
            if ended:
                whole = cut
                break
        assert whole > 8


async def frames(reader: Any, count: int) -> tuple[bytes, bool]:
    """Read `count` frames from the connection. Return their bytes, and True if the stream has ended."""
    seen = b""
    while seen.count(b"\n\n") < count:
        size = int(await reader.readuntil(b"\r\n"), 16)
        if size == 0:
            return seen, True
        seen += await reader.readexactly(size)
        await reader.readexactly(2)
    at = -1
    for _ in range(count):
        at = seen.index(b"\n\n", at + 1)
    return seen[: at + 2], b"[DONE]" in seen[: at + 2]


def texts(parts: Any) -> list[Any]:
    return [(part.get("text"), part.get("toolCallId"), part.get("input"), part.get("state")) for part in parts]
