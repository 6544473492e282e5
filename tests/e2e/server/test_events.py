from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import aiohttp
import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.stream_calls import post, say
from moot.server.streams.response import EventStream
from moot.testing.script import Reply
from moot.types.event import Event
from moot.types.store import Log

pytestmark = pytest.mark.anyio


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.content:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


async def test_all_events_after_any_seq_are_sent_without_gaps(server: LiveServer) -> None:
    await post(server, say("hi"))
    last = await server.engine.store.log.last_seq((await server.engine.store.records.runs())[0].conversation)
    for after in (0, 5):
        async with server.client.get(f"/api/conversations/c1/events?after={after}") as answer:
            seqs = []
            async for event in events(answer):
                assert set(event) <= {"seq", "at", "run", "kind", "exchange", "chunks", "phase", "key"}
                seqs.append(event["seq"])
                if event["seq"] == last:
                    break
        assert seqs == list(range(after + 1, last + 1))


async def test_raw_bytes_are_sent_on_request(server: LiveServer) -> None:
    await post(server, say("hi"))
    run = (await server.engine.store.records.runs())[0]
    async with server.client.get(f"/api/runs/{run.id}/events?raw=1") as answer:
        found = [event async for event in events(answer)]
    assert found[0]["seq"] == run.first_seq and found[-1]["key"] == "run"
    assert any("Hello" in event.get("raw", "") for event in found)


async def test_a_revoked_token_ends_its_streams(server: LiveServer) -> None:
    await post(server, say("hi"))
    server.state.streams.timing.check_interval = 0.05
    async with server.caller(scopes=["read"]) as reader, reader.get("/api/conversations/c1/events?after=2") as answer:
        await answer.content.readuntil(b"\n\n")
        token = next(token for token in await server.engine.store.tokens.list() if token.name == "a test's")
        await server.state.tokens.revoke(token.id)
        with anyio.fail_after(60):
            rest = (await answer.read()).decode()
        assert ": cut: the token was revoked; resume with Last-Event-ID: " in rest and "[DONE]" not in rest


async def test_streams_end_as_soon_as_the_server_stops(open_server: Callable[..., Any]) -> None:
    async with open_server() as server:
        server.state.streams.timing.check_interval = 3600
        await post(server, say("hi"))
        async with server.client.get("/api/conversations/c1/events?after=2") as answer:
            await answer.content.readuntil(b"\n\n")
            server.state.stopping.set()
            with anyio.fail_after(60):
                rest = (await answer.read()).decode()
            assert ": cut: the server is stopping; resume with Last-Event-ID: " in rest and "[DONE]" not in rest


async def test_an_idle_stream_sends_comments(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="x", wait=60)]) as server:
        server.state.streams.timing.check_interval, server.state.streams.timing.heartbeat = 0.05, 0.2
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            with anyio.fail_after(60):
                await answer.content.readuntil(b": keep-alive\n\n: keep-alive\n\n")


class LastWords:
    """A writer that finds during a check that the run has ended, because another process stored its last event just then."""

    def __init__(self, log: Log, conversation: str) -> None:
        self.ended = False
        self.last = ""
        self._log = log
        self._conversation = conversation

    async def write(self, events: Sequence[Event]) -> bytes:
        self.ended = False
        return b"".join(f"data: {event.body}\n\n".encode() for event in events)

    async def check(self) -> bytes:
        await self._log.append(self._conversation, (Event("meta", body="last words"),))
        self.ended = True
        return b""


async def test_events_stored_while_a_stream_finds_that_the_run_has_ended_are_sent(server: LiveServer) -> None:
    await post(server, say("hi"))
    conversation = (await server.engine.store.records.runs())[0].conversation
    log, sent = server.engine.store.log, list[bytes]()
    server.state.streams.timing.check_interval, server.state.streams.timing.heartbeat = 0.01, 0.02
    caller = await server.state.tokens.caller(await server.token())
    assert caller is not None
    stream = EventStream(server.state, caller, conversation, await log.last_seq(conversation), LastWords(log, conversation))

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    with anyio.fail_after(60):
        await stream({"type": "http"}, anyio.sleep_forever, send)  # pyright: ignore[reportArgumentType]  # it never disconnects
    assert b"".join(sent) == b"data: last words\n\ndata: [DONE]\n\n"


async def test_a_client_that_stops_reading_is_disconnected_with_a_hint(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="x" * 12_000_000, chunk_size=100_000)]) as server:
        server.state.streams.timing.check_interval, server.state.streams.timing.stall_timeout = 0.05, 0.3
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        reader, writer = await asyncio.open_connection(sock=small, limit=1024)
        body = json.dumps(say("hi"))
        head = f"POST /api/chat HTTP/1.1\r\nHost: {server.url[7:]}\r\nAuthorization: {server.client.headers['authorization']}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        for _ in range(1200):  # rounds of the loop that the server shares, so a slow machine makes them longer
            if server.state.metrics.registry.get_sample_value("moot_slow_watchers_cut_total"):
                break
            await anyio.sleep(0.05)
        else:
            pytest.fail("The client was not disconnected.")
        received = b""
        while piece := await reader.read(1 << 20):
            received = (received + piece)[-200_000:]
            if b": cut: the client did not read for too long; resume with Last-Event-ID: " in received:
                break
        writer.close()
        await writer.wait_closed()
        assert received.rstrip().endswith(b"0") and b"[DONE]" not in received
