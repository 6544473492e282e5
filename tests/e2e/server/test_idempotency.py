from __future__ import annotations

import asyncio
import http.client
import json
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import make
from e2e.server.conftest import LiveServer, ServedHome
from e2e.server.http_calls import called
from e2e.server.stream_calls import messages, post, say, text
from moot.store.database.connection import connect
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.message import text_part
from moot.types.token import StoredResponse

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KEY = {"idempotency-key": "k-1"}


async def tokens(server: LiveServer) -> int:
    return len((await (await server.client.get("/api/tokens")).json())["data"])


async def problem(answer: Any) -> dict[str, Any]:
    told: dict[str, Any] = await answer.json(content_type="application/problem+json")
    return told


CALL = {"model": "scripted@mine", "messages": [{"role": "user", "content": "hi"}]}
HISTORY = [
    {"id": "h1", "role": "user", "parts": [text_part("before")]},
    {"id": "h2", "role": "assistant", "parts": [text_part("Yes.")]},
]


async def asked(server: LiveServer, path: str, body: Any) -> Any:
    """Send the request with the key; return its JSON, or the frames of a stream."""
    async with server.client.post(path, json=body, headers=KEY) as answer:
        content = await answer.text()
        assert answer.status < 300, content
        return json.loads(content) if answer.content_type == "application/json" else content.count("data:")


def write(server: LiveServer, sql: str) -> list[Any]:
    with closing(connect(server.engine.settings.database, writing=True)) as connection:
        return connection.execute(sql).fetchall()


async def rows(server: LiveServer) -> dict[str, list[str]]:
    """Return the ids of everything a request can create, once all runs have ended."""
    while any(write(server, "SELECT 1 FROM run WHERE status IN ('running', 'queued')")):
        await asyncio.sleep(0.01)
    tables = ("conversation", "message", "run", "project", "token", "share")
    return {
        name: [row[0] for row in write(server, f"SELECT {'no' if name == 'inbox' else 'id'} FROM {name} ORDER BY 1")] for name in tables
    }


async def forget_responses(server: LiveServer) -> None:
    """Leave the store as a server does that was killed before it stored a response."""
    sql = "UPDATE idempotency SET status = NULL, headers = NULL, body = NULL WHERE status IS NOT NULL RETURNING key"
    while not write(server, sql):  # the response is stored after it was sent
        await asyncio.sleep(0.01)


async def test_twenty_concurrent_requests_with_one_key_have_one_effect(server: LiveServer) -> None:
    answers = await asyncio.gather(*(server.client.post("/api/tokens", json={"name": "once"}, headers=KEY) for _ in range(20)))
    assert await tokens(server) == 1
    assert sorted(answer.status for answer in answers) == [201, *[409] * 19]


async def test_a_repeated_request_returns_the_same_bytes(server: LiveServer) -> None:
    first = await server.client.post("/api/logout", headers={**KEY, "authorization": f"Bearer {await server.token()}"})
    assert first.status == 204
    store = server.engine.store.tokens.idempotency
    await store.claim("local", "k-2", request=b"x", worker="w")
    await store.keep("local", "k-2", StoredResponse(201, [("content-type", "application/json")], b'{"a":1}'))
    claim = await store.claim("local", "k-2", request=b"x", worker="w")
    assert claim.kept == StoredResponse(201, (("content-type", "application/json"),), b'{"a":1}')


async def test_the_same_key_with_another_body_is_rejected(server: LiveServer) -> None:
    assert (await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)).status == 201
    other = await server.client.post("/api/tokens", json={"name": "other"}, headers=KEY)
    assert (other.status, (await problem(other))["code"]) == (409, "key_reused")
    assert await tokens(server) == 1


async def test_keys_of_different_users_are_independent(server: LiveServer) -> None:
    assert (await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)).status == 201
    async with server.caller(scopes=["admin"], owner="mara") as mara:
        assert (await mara.post("/api/tokens", json={"name": "hers"}, headers=KEY)).status == 201


async def test_a_rejected_request_does_not_use_up_the_key(server: LiveServer) -> None:
    assert (await server.client.post("/api/tokens", json={"name": ""}, headers=KEY)).status == 422
    assert (await server.client.post("/api/tokens", json={"name": "good"}, headers=KEY)).status == 201


async def test_the_secret_of_a_token_is_not_stored_for_repeated_requests(server: LiveServer) -> None:
    first = await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)
    secret = (await first.json())["secret"]
    again = await server.client.post("/api/tokens", json={"name": "once"}, headers=KEY)
    assert (again.status, (await problem(again))["code"]) == (409, "answer_unknown")
    assert not any(secret.encode() in path.read_bytes() for path in server.engine.settings.home.rglob("moot.db*"))


CREATING = {
    "a prompt": ("/api/chat", say("hi")),
    "a prompt without an id": ("/api/chat", {"id": "c1", "message": {"role": "user", "parts": [text_part("hi")]}}),
    "a prompt with a history": ("/api/chat", {**say("hi"), "messages": [*HISTORY, *say("hi")["messages"]]}),
    "another answer": ("/api/chat", {"id": "old", "trigger": "regenerate-message"}),
    "a prompt without a stream": ("/api/conversations/old/messages", {"text": "hi"}),
    "an edit": ("/api/conversations/old/messages", {"text": "hi", "edits": "u1"}),
    "a conversation": ("/api/conversations", {"title": "new"}),
    "a fork": ("/api/conversations/old/fork", {}),
    "a project": ("/api/projects", {"name": "shop"}),
    "a completion": ("/v1/chat/completions", CALL),
    "a streamed completion": ("/v1/chat/completions", {**CALL, "stream": True}),
    "a response": ("/v1/responses", {"model": "scripted@mine", "input": "hi"}),
    "a message": ("/v1/messages", {**CALL, "max_tokens": 10}),
    "a token": ("/api/tokens", {"name": "once"}),
    "a share": ("/api/shares", {"conversation": "old"}),
}
"""Requests that create something."""
EVERYDAY = ("a prompt", "another answer", "a fork", "a streamed completion", "a token")
"""One request of each way to find what the first one created; the others are slow tests."""


@pytest.mark.parametrize(
    "request_of", [pytest.param(of, id=name, marks=() if name in EVERYDAY else pytest.mark.slow) for name, of in CREATING.items()]
)
async def test_a_request_whose_response_is_lost_creates_nothing_twice(server: LiveServer, request_of: tuple[str, Any]) -> None:
    path, body = request_of
    await post(server, say("hello", chat="old"))
    first = await asked(server, path, body)
    existing = await rows(server)
    await forget_responses(server)
    again = await asked(server, path, body)
    assert await rows(server) == existing
    assert isinstance(first, int) or first.get("id") == again.get("id")
    assert isinstance(first, int) or "secret" not in first or first["secret"] != again["secret"]  # only its hash is stored


async def test_a_message_for_the_live_run_whose_response_is_lost_is_read_once(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Hello there.", hang_at=1), Reply(text="Yes.", times=0)]) as server:
        await server.client.post("/api/conversations", json={"client_id": "c1"})
        await server.client.post("/api/conversations/c1/messages", json={"text": "hello"})
        await called(server)
        path, body = "/api/conversations/c1/messages", {"text": "and this", "on_busy": "steer"}
        first = await asked(server, path, body)
        await forget_responses(server)
        again = await asked(server, path, body)
        assert (again["steered"], again["run"]["id"]) == (True, first["run"]["id"])
        queue = await (await server.client.get("/api/conversations/c1/queue")).json()
        assert len(queue["steered"]) == 1


async def test_a_command_whose_response_is_lost_is_not_repeated(server: LiveServer) -> None:
    conversation = await (await server.client.post("/api/conversations", json={})).json()
    body = {"conversation": conversation["id"], "argument": "a name", "wishes": {}}
    assert (await server.client.post("/api/commands/title", json=body, headers=KEY)).status == 200
    await forget_responses(server)
    again = await server.client.post("/api/commands/title", json=body, headers=KEY)
    assert (again.status, (await problem(again))["code"]) == (409, "answer_unknown")


async def test_a_stream_that_the_client_left_is_sent_again(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Hello there.", hang_at=2), Reply(text="Yes.", times=0)]) as server:
        async with server.client.post("/api/chat", json=say("hi"), headers=KEY) as answer:
            await answer.content.readuntil(b"\n\n")
        await server.client.post("/api/chat/c1/stop")
        assert "abort" in [chunk["type"] for chunk in await post(server, say("hi"), **KEY)]
        assert len(await messages(server)) == 2


def send(home: ServedHome, path: str, body: Any = None) -> bytes:
    """Send a request with the key and return the body of its response. Raise OSError or HTTPException if the server dies."""
    with closing(http.client.HTTPConnection("127.0.0.1", home.port, timeout=60)) as connection:
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {**home.headers, **KEY, "content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status < 400, content
        return content


def retried(home: ServedHome, point: str) -> bool:
    """Send a prompt to a server that is killed at the point, and again to the next server, and check that it is stored and answered once.

    Return whether the first server was killed while it handled the prompt.
    """
    body = {"id": "c1", "message": {"role": "user", "parts": [text_part("hi")]}}
    home.moot.more |= {"MOOT_TESTING": "1", "MOOT_CRASH_AT": point}
    home.start()
    assert home.process is not None
    try:
        send(home, "/api/chat", body)
        home.stop(signal.SIGKILL)
        killed = False
    except (OSError, http.client.HTTPException):
        killed = home.process.wait(60) == -signal.SIGKILL
    home.moot.more["MOOT_CRASH_AT"] = ""
    home.start()
    answer = [json.loads(line[6:]) for line in send(home, "/api/chat", body).decode().splitlines() if line.startswith("data: {")]
    assert text(answer).endswith("Hello there.")  # a model call that was cut off is made again
    assert [message["role"] for message in json.loads(send(home, "/api/chat/c1/messages"))] == ["user", "assistant"]
    assert len(json.loads(send(home, "/api/runs"))["data"]) == len(json.loads(send(home, "/api/conversations"))["data"]) == 1
    home.stop(signal.SIGKILL)
    return killed


def test_a_prompt_repeated_after_the_server_was_killed_is_stored_once(serve_home: Callable[..., ServedHome]) -> None:
    assert retried(serve_home(), "run.started")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", ["store.before-commit", "store.after-commit"])
def test_a_prompt_repeated_after_a_kill_at_any_commit_is_stored_once(tmp_path: Path, point: str) -> None:
    kills = 0
    for commit in range(1, 13):
        with ScriptedProcess([Reply(text="Hello there.", times=0)]) as model:
            (place := tmp_path / str(commit)).mkdir()
            moot = make(place, model.config())
            try:
                killed = retried(ServedHome(moot, model), f"{point}:{commit}")
            finally:
                moot.close()
        kills += killed
    assert kills > 5


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_an_invalid_key_is_rejected(server: LiveServer, key: str) -> None:
    assert (await server.client.post("/api/tokens", json={"name": "once"}, headers={"idempotency-key": key})).status == 400
