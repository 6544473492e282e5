"""Streams: readers that go away at any moment, positions that are nonsense, and one conversation driven from everywhere at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from e2e.server.conftest import FIXED, LiveServer
from e2e.server.raw import request, wire
from e2e.server.streaming import messages, post, say, text
from moot.testing.scripted import Reply
from moot.types.part import text_part
from moot.types.run import Prompt

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

BEARER = f"authorization: Bearer {FIXED}"


async def events(server: LiveServer, conversation: str, after: int, count: int, **headers: str) -> list[dict[str, Any]]:
    """So many events behind a position, as a watcher gets them."""
    found: list[dict[str, Any]] = []
    path = f"/api/conversations/{conversation}/events?after={after}"
    with anyio.fail_after(20):
        async with server.client.get(path, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            while len(found) < count:
                line = (await answer.content.readline()).decode()
                assert line, found
                if line.startswith("data: {"):
                    found.append(json.loads(line[6:]))
    return found


async def ended(server: LiveServer, chat: str, count: int) -> list[dict[str, Any]]:
    """The messages of a conversation once it has so many whole ones."""
    with anyio.fail_after(20):
        while True:
            async with server.client.get(f"/api/chat/{chat}/messages") as answer:
                found: list[dict[str, Any]] = await answer.json() if answer.status == 200 else []
            running = (await (await server.client.get("/api/runs", params={"live": "true"})).json())["data"]
            if len(found) >= count and not running:
                return found
            await anyio.sleep(0.05)


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 200", b'"start"', b'"text-start"', b'"text-delta"', b'"finish"'])
async def test_whoever_hangs_up_at_any_moment_stops_nothing(open_server: Callable[..., Any], after: bytes) -> None:
    words = "one two three four five six seven eight nine ten"
    async with open_server([Reply(text=words, chunk_size=4, delay=0.02)]) as server:
        body = json.dumps(say("go on", chat="gone")).encode()
        async with wire(server.url) as caller:
            host = f"host: {server.url.removeprefix('http://')}"
            await caller.send(request("POST", "/api/chat", host, BEARER, "content-type: application/json", body=body))
            seen = b""
            with anyio.fail_after(20):
                while after not in seen:
                    piece = await caller.reader.read(64)
                    assert piece, seen
                    seen += piece
            if not after:
                await anyio.sleep(0.05)  # the request has to arrive before the line is cut
        found = await ended(server, "gone", 2)
        assert [part["text"] for part in found[-1]["parts"] if part["type"] == "text"] == [words]


@pytest.mark.parametrize("position", ["-1", "1.5", "x", "99999999999999999999", "0x1", "1;2", "%00", "", "1e3", "\u0661"])
async def test_a_position_that_is_none_is_refused_in_words(server: LiveServer, position: str) -> None:
    await post(server, say("hi", chat="c"))
    host = f"host: {server.url.removeprefix('http://')}"
    conversation = (await (await server.client.get("/api/conversations/c")).json())["id"]
    for target in (f"/api/conversations/{conversation}/events", "/api/conversations/c/events"):
        async with server.client.get(target, params={"after": position}) as answer:
            assert answer.status in (400, 422), (target, position)
            assert answer.content_type == "application/problem+json"
    async with wire(server.url) as caller:
        await caller.send(request("GET", "/api/chat/c/stream", host, BEARER, f"last-event-id: {position}"))
        assert (await caller.answer()).status in (200, 204, 400, 422)


async def test_from_any_position_the_rest_comes_once_and_in_order(server: LiveServer) -> None:
    await post(server, say("hi", chat="c"))
    conversation = (await (await server.client.get("/api/conversations/c")).json())["id"]
    last = await server.engine.store.log.last_seq(conversation)
    whole = await events(server, conversation, 0, last)
    assert [event["seq"] for event in whole] == list(range(1, last + 1))
    for after in (1, last // 2, last - 1):
        assert await events(server, conversation, after, last - after) == whole[after:]
        if after:
            assert await events(server, conversation, 0, last - after, **{"last-event-id": str(after)}) == whole[after:]


async def test_ids_and_words_of_callers_never_begin_a_frame_of_their_own(server: LiveServer) -> None:
    forged = "\n\ndata: [DONE]\n\nid: 7\r\ndata: {}\r\n\r\n"
    chunks = await post(server, say(f"hi{forged}"))
    assert text(chunks) == "Hello there."
    assert (await messages(server))[0]["parts"][0]["text"] == f"hi{forged}"
    for body in (say("hi", chat=f"c{forged}"), say("hi", id=f"u{forged}")):
        async with server.client.post("/api/chat", json=body) as answer:
            assert answer.status == 422, await answer.text()


async def test_words_of_a_model_never_begin_a_frame_of_their_own(open_server: Callable[..., Any]) -> None:
    words = 'one\n\ndata: {"type":"error","errorText":"forged"}\n\n\r\ndata: [DONE]\r\n\r\n: \u2028\u2029\x85two'
    async with open_server([Reply(text=words, chunk_size=3)]) as server:
        chunks = await post(server, say("go on"))
    assert text(chunks) == words
    assert "error" not in {chunk["type"] for chunk in chunks}


@pytest.mark.slow
async def test_every_driver_and_every_viewer_agree_on_one_order(open_server: Callable[..., Any]) -> None:
    """The library, the chat of the AI SDK and our own operations act on one conversation in any order, also at once."""
    turns = st.lists(
        st.lists(st.sampled_from(["chat", "prompt", "library", "cancel", "title"]), min_size=1, max_size=4), min_size=1, max_size=4
    )
    portal: list[Any] = []

    async with open_server([Reply(text="Hello there.", times=0)]) as server, anyio.from_thread.BlockingPortal() as calls:
        portal.append(calls)
        number = 0

        async def act(driver: str, chat: str, conversation: str) -> None:
            nonlocal number
            number += 1
            words = f"{driver} {number}"
            if driver == "chat":
                async with server.client.post("/api/chat", json=say(words, id=words, chat=chat, on_busy="queue")) as answer:
                    await answer.read()
                    assert answer.status == 200
            elif driver == "prompt":
                path = f"/api/conversations/{conversation}/messages"
                async with server.client.post(path, json={"text": words, "on_busy": "queue"}) as answer:
                    assert answer.status == 202, await answer.text()
            elif driver == "library":
                await server.engine.runs.submit(Prompt((text_part(words),), conversation=conversation, on_busy="queue"))
            elif driver == "cancel":
                await server.client.post(f"/api/chat/{chat}/stop")
            else:
                await server.client.patch(f"/api/conversations/{conversation}", json={"title": words})

        async def played(plan: list[list[str]]) -> None:
            chat = f"many-{number}"
            await post(server, say("first", chat=chat))
            conversation = (await (await server.client.get(f"/api/conversations/{chat}")).json())["id"]
            for together in plan:
                async with anyio.create_task_group() as group:
                    for driver in together:
                        group.start_soon(act, driver, chat, conversation)
            await quiet(conversation)
            last = await server.engine.store.log.last_seq(conversation)
            views = [await events(server, conversation, 0, last) for _ in range(2)]
            assert views[0] == views[1]
            assert [event["seq"] for event in views[0]] == list(range(1, last + 1))
            stored = await server.engine.store.log.read(conversation, limit=last)
            assert [event.seq for event in stored] == [event["seq"] for event in views[0]]
            alternate([event["run"] for event in views[0] if event["kind"] in ("raw", "exchange")])
            branch = await messages(server, chat)
            roles = [message["role"] for message in branch]
            assert roles == ["user", "assistant"] * (len(roles) // 2), roles

        async def quiet(conversation: str) -> None:
            with anyio.fail_after(30):
                while (await (await server.client.get("/api/runs", params={"conversation": conversation, "live": "true"})).json())["data"]:
                    await anyio.sleep(0.02)

        @settings(max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(plan=turns)
        def every(plan: list[list[str]]) -> None:
            portal[0].call(played, plan)

        await anyio.to_thread.run_sync(every)


def alternate(runs: list[str]) -> None:
    """No run's answer goes on once another's has begun."""
    begun: list[str] = []
    for run in runs:
        if not begun or begun[-1] != run:
            assert run not in begun, runs
            begun.append(run)
