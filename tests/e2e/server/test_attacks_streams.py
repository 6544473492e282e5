"""Streams: clients that disconnect at any moment, invalid positions, and one conversation used through all APIs concurrently."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from e2e.server.conftest import FIXED, LiveServer, ServedHome
from e2e.server.http_calls import called
from e2e.server.raw import request, wire
from e2e.server.stream_calls import messages, post, say, text
from e2e.server.test_serve import ask, eventually
from moot.testing.script import Reply
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

BEARER = f"authorization: Bearer {FIXED}"


async def events(server: LiveServer, conversation: str, after: int, count: int, **headers: str) -> list[dict[str, Any]]:
    """Return the first `count` events after a position, as a watcher receives them."""
    found: list[dict[str, Any]] = []
    path = f"/api/conversations/{conversation}/events?after={after}"
    with anyio.fail_after(60):
        async with server.client.get(path, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            while len(found) < count:
                line = (await answer.content.readline()).decode()
                assert line, found
                if line.startswith("data: {"):
                    found.append(json.loads(line[6:]))
    return found


async def ended(server: LiveServer, chat: str, count: int) -> list[dict[str, Any]]:
    """Wait until a conversation has `count` complete messages and return them."""
    with anyio.fail_after(60):
        while True:
            async with server.client.get(f"/api/chat/{chat}/messages") as answer:
                found: list[dict[str, Any]] = await answer.json() if answer.status == 200 else []
            running = (await (await server.client.get("/api/runs", params={"live": "true"})).json())["data"]
            if len(found) >= count and not running:
                return found
            await anyio.sleep(0.05)


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 200", b'"start"', b'"text-start"', b'"text-delta"', b'"finish"'])
@pytest.mark.slow
async def test_a_client_that_disconnects_at_any_moment_stops_no_run(open_server: Callable[..., Any], after: bytes) -> None:
    words = "one two three four five six seven eight nine ten"
    async with open_server([Reply(text=words, chunk_size=4, hang_at=8)]) as server:
        body = json.dumps(say("go on", chat="gone")).encode()
        async with wire(server.url) as caller:
            host = f"host: {server.url.removeprefix('http://')}"
            await caller.send(request("POST", "/api/chat", host, BEARER, "content-type: application/json", body=body))
            await called(server)  # the request must arrive before the connection is closed
            if after == b'"finish"':
                server.model.release()
            seen = b""
            with anyio.fail_after(60):
                while after not in seen:
                    piece = await caller.reader.read(64)
                    assert piece, seen
                    seen += piece
        server.model.release()
        found = await ended(server, "gone", 2)
        assert [part["text"] for part in found[-1]["parts"] if part["type"] == "text"] == [words]


@pytest.mark.parametrize("position", ["-1", "1.5", "x", "99999999999999999999", "0x1", "1;2", "%00", "", "1e3", "\u0661"])
@pytest.mark.slow
async def test_an_invalid_position_is_rejected_with_an_explanation(server: LiveServer, position: str) -> None:
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


async def test_a_stream_resumed_at_any_position_sends_the_rest_once_and_in_order(server: LiveServer) -> None:
    await post(server, say("hi", chat="c"))
    conversation = (await (await server.client.get("/api/conversations/c")).json())["id"]
    last = await server.engine.store.log.last_seq(conversation)
    whole = await events(server, conversation, 0, last)
    assert [event["seq"] for event in whole] == list(range(1, last + 1))
    for after in (1, last // 2, last - 1):
        assert await events(server, conversation, after, last - after) == whole[after:]
        if after:
            assert await events(server, conversation, 0, last - after, **{"last-event-id": str(after)}) == whole[after:]


async def test_callers_ids_and_texts_never_inject_a_frame(server: LiveServer) -> None:
    forged = "\n\ndata: [DONE]\n\nid: 7\r\ndata: {}\r\n\r\n"
    chunks = await post(server, say(f"hi{forged}"))
    assert text(chunks) == "Hello there."
    assert (await messages(server))[0]["parts"][0]["text"] == f"hi{forged}"
    for body in (say("hi", chat=f"c{forged}"), say("hi", id=f"u{forged}")):
        async with server.client.post("/api/chat", json=body) as answer:
            assert answer.status == 422, await answer.text()


async def test_a_models_text_never_injects_a_frame(open_server: Callable[..., Any]) -> None:
    words = 'one\n\ndata: {"type":"error","errorText":"forged"}\n\n\r\ndata: [DONE]\r\n\r\n: \u2028\u2029\x85two'
    async with open_server([Reply(text=words, chunk_size=3)]) as server:
        chunks = await post(server, say("go on"))
    assert text(chunks) == words
    assert "error" not in {chunk["type"] for chunk in chunks}


class Drivers:
    """The library, the AI SDK's chat route and moot's own routes, all using one conversation."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.number = 0
        self.chat = ""
        self.conversation = ""

    async def begin(self) -> None:
        self.number += 1
        self.chat = f"many-{self.number}"
        await post(self.server, say("first", chat=self.chat))
        self.conversation = (await (await self.server.client.get(f"/api/conversations/{self.chat}")).json())["id"]

    async def act(self, driver: str) -> None:
        self.number += 1
        client, path, words = self.server.client, f"/api/conversations/{self.conversation}", f"{driver} {self.number}"
        match driver:
            case "chat":
                async with client.post("/api/chat", json=say(words, id=words, chat=self.chat, on_busy="queue")) as answer:
                    await answer.read()
                    assert answer.status == 200
            case "prompt":
                async with client.post(f"{path}/messages", json={"text": words, "on_busy": "queue"}) as answer:
                    assert answer.status == 202, await answer.text()
            case "library":
                await self.server.engine.runs.submit(Prompt((text_part(words),), conversation=self.conversation, on_busy="queue"))
            case "cancel":
                await client.post(f"/api/chat/{self.chat}/stop")
            case _:
                await client.patch(path, json={"title": words})

    async def quiet(self) -> None:
        with anyio.fail_after(60):
            query = {"conversation": self.conversation, "live": "true"}
            while (await (await self.server.client.get("/api/runs", params=query)).json())["data"]:
                await anyio.sleep(0.02)

    async def agree(self) -> None:
        """Check that two viewers and the store have the same events, and that answers don't interleave."""
        last = await self.server.engine.store.log.last_seq(self.conversation)
        views = [await events(self.server, self.conversation, 0, last) for _ in range(2)]
        assert views[0] == views[1]
        assert [event["seq"] for event in views[0]] == list(range(1, last + 1))
        stored = await self.server.engine.store.log.read(self.conversation, limit=last)
        assert [event.seq for event in stored] == [event["seq"] for event in views[0]]
        alternate([event["run"] for event in views[0] if event["kind"] in ("raw", "exchange")])
        roles = [message["role"] for message in await messages(self.server, self.chat)]
        assert roles == ["user", "assistant"] * (len(roles) // 2), roles

    async def play(self, plan: list[list[str]]) -> None:
        await self.begin()
        for together in plan:
            async with anyio.create_task_group() as group:
                for driver in together:
                    group.start_soon(self.act, driver)
        await self.quiet()
        await self.agree()


KINDS = st.sampled_from(["chat", "prompt", "library", "cancel", "title"])


@pytest.mark.slow
async def test_all_drivers_and_viewers_see_the_same_order_of_events(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Hello there.", times=0)]) as server, anyio.from_thread.BlockingPortal() as portal:
        drivers = Drivers(server)

        @settings(max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(plan=st.lists(st.lists(KINDS, min_size=1, max_size=4), min_size=1, max_size=4))
        def every(plan: list[list[str]]) -> None:
            portal.call(drivers.play, plan)

        await anyio.to_thread.run_sync(every)


@pytest.mark.slow
def test_command_lines_and_http_clients_share_one_conversation(server_process: ServedHome) -> None:
    url = f"{server_process.url}/api/conversations"
    conversation = ask(url, data={})[1]["id"]
    lines = [server_process.moot.start("chat", "continue", conversation, f"from a line {number}") for number in range(3)]
    for number in range(3):
        assert ask(f"{url}/{conversation}/messages", data={"text": f"from a caller {number}", "on_busy": "queue"})[0] in (202, 409)
    assert {line.wait(60) for line in lines} <= {0, 7}  # finished, or rejected as busy
    assert eventually(lambda: not ask(f"{server_process.url}/api/runs?live=true&conversation={conversation}")[1]["data"])
    listed = ask(f"{url}/{conversation}/messages?limit=50")[1]["data"]
    shown = server_process.moot.run("chat", "show", conversation, "--json")
    seen = [message["id"] for message in json.loads(shown.stdout)["data"]]
    assert sorted(seen) == sorted(message["id"] for message in listed) and len(seen) >= 2


def alternate(runs: list[str]) -> None:
    """Check that no run has events after the next run started."""
    begun: list[str] = []
    for run in runs:
        if not begun or begun[-1] != run:
            assert run not in begun, runs
            begun.append(run)
