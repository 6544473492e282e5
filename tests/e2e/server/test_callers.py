"""Programs that use moot as a model: access to conversations, scopes and limits."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import began, sent
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.limits import Limits as RunLimits

pytestmark = pytest.mark.anyio

MODEL = "scripted@mine"
ROUTES = {"/v1/chat/completions": "messages", "/v1/responses": "input", "/v1/messages": "messages"}


def asks(path: str, text: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 50, ROUTES[path]: [{"role": "user", "content": text}], **more}


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
@pytest.mark.slow
async def test_either_header_accepts_a_token_with_the_same_access(server: LiveServer, path: str, header: str) -> None:
    async with server.stranger() as stranger:
        for scope, status in (("read", 403), ("chat", 200)):
            secret = await server.token(scopes=[scope])  # type: ignore[list-item]
            answer = await stranger.post(
                path, json=asks(path), headers={header: f"Bearer {secret}" if header == "authorization" else secret}
            )
            assert answer.status == status, await answer.text()
        wrong = await stranger.post(path, json=asks(path), headers={header: "Bearer wrong"})
        assert wrong.status == 401 and "error" in await wrong.json()


async def test_another_users_answer_cannot_be_continued(server: LiveServer) -> None:
    async with server.caller(owner="mara") as mara, server.caller(owner="nick") as nick:
        first = await (await mara.post("/v1/responses", json=asks("/v1/responses", "Mara's secret"))).json()
        assert (await mara.get(f"/v1/responses/{first['id']}")).status == 200
        assert (await nick.get(f"/v1/responses/{first['id']}")).status == 404
        assert (await nick.post(f"/v1/responses/{first['id']}/cancel")).status == 404
        stolen = await nick.post("/v1/responses", json=asks("/v1/responses", "?", previous_response_id=first["id"]))
        assert stolen.status == 404
        talk = [
            {"role": "user", "content": "Mara's secret"},
            {"role": "assistant", "content": "Hello there."},
            {"role": "user", "content": "?"},
        ]
        guessed = await nick.post("/v1/chat/completions", json={"model": MODEL, "messages": talk})
        hers = (await mara.post("/v1/chat/completions", json={"model": MODEL, "messages": talk})).headers["x-moot-conversation-id"]
        assert guessed.status == 200 and guessed.headers["x-moot-conversation-id"] != hers
        named = {"x-moot-conversation": "diary"}
        one = await mara.post("/v1/messages", json=asks("/v1/messages"), headers=named)
        two = await nick.post("/v1/messages", json=asks("/v1/messages"), headers=named)
        assert two.status == 200 and one.headers["x-moot-conversation-id"] != two.headers.get("x-moot-conversation-id")
        assert "Mara" not in json.dumps(server.model.requests[-1].json)


async def test_the_chat_scope_lets_an_agent_use_no_tools_with_effects(
    open_server: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # working directory of its commands
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]), Reply(text="Done.", times=0)]
    agents = {"default": Agent(), "worker": Agent("worker", tools=("shell",))}
    for scope, made in (("chat", False), ("tools", True)):
        async with open_server(script, agents=agents) as server, server.caller(scopes=[scope]) as caller:
            body = {"model": "agent:worker", "messages": [{"role": "user", "content": "Go"}]}
            answer = await caller.post("/v1/chat/completions", json=body)
            assert answer.status == 200
            outputs = [message["content"] for message in server.model.requests[1].json["messages"] if message["role"] == "tool"]
            assert ("approval" in outputs[0]) != made


@pytest.mark.parametrize(("path", "said"), {**dict.fromkeys(ROUTES, b": queued\n\n"), "/v1/messages": b"event: ping\n"}.items())
async def test_a_stream_over_the_limit_of_runs_says_at_once_that_it_is_queued(
    open_server: Callable[..., Any], path: str, said: bytes
) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="Hello.", chunk_size=9) if "second" in str(recorded.json["messages"]) else Reply(text="slow", hang_at=0)

    async with open_server(script, limits=RunLimits(runs_per_user=1)) as server:
        first = await began(server)
        submitted = await sent(server.client, "POST", f"/api/conversations/{first['id']}/messages", {"text": "first"}, 202)
        async with server.client.post(path, json=asks(path, "second", stream=True)) as answer:
            assert answer.status == 200
            await answer.content.readuntil(said)
            await server.client.post(f"/api/runs/{submitted['run']['id']}/cancel")
            assert b"Hello." in await answer.read()


BROKEN = {
    "no JSON": b"{",
    "not UTF-8": b'{"model": "\xff"}',
    "a key twice": b'{"model": "a", "model": "b"}',
    "NaN": b'{"model": "m", "temperature": NaN}',
    "no object": b"[]",
    "too deep": b'{"model": "m", "messages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "nothing": b"",
}


@pytest.mark.parametrize("path", ROUTES)
async def test_an_invalid_body_is_rejected_with_an_error_of_the_dialect(server: LiveServer, path: str) -> None:
    for name, body in BROKEN.items():
        answer = await server.client.post(path, data=body, headers={"content-type": "application/json"})
        told = await answer.json()
        assert answer.status == 400 and told["error"]["type"] == "invalid_request_error", f"{name}: {told}"
    assert server.model.requests == []


async def test_a_body_that_is_too_large_is_rejected(server: LiveServer) -> None:
    body = io.BytesIO(b'{"model": "' + b"x" * (33 << 20))
    large = await server.client.post("/v1/chat/completions", data=body, headers={"content-type": "application/json"})
    assert large.status == 413


async def test_any_text_reaches_the_model_and_is_returned(open_server: Callable[..., Any]) -> None:
    words = "\ud83d\ude00 \u0000 \u202e é \u2028 </script>"
    async with open_server([Reply(text="\u2028 \x07 </script>", times=0)]) as server:
        for path in ROUTES:
            answer = await server.client.post(
                path, data=json.dumps(asks(path, words, stream=True)), headers={"content-type": "application/json"}
            )
            lines = (await answer.text()).split("\n")
            assert all(line.startswith(("data: ", "event: ")) or not line for line in lines)
        assert server.model.requests[0].json["messages"][0]["content"] == "\U0001f600 \u0000 \u202e é \u2028 </script>"


async def test_concurrent_calls_that_continue_one_answer_all_succeed(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Yes.", times=0, delay=0.01)]) as server:
        first = {"model": MODEL, "messages": [{"role": "user", "content": "Start"}]}
        await server.client.post("/v1/chat/completions", json=first)
        answers: list[str] = []

        async def ask(number: int) -> None:
            talk = [*first["messages"], {"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"And {number}?"}]
            answer = await server.client.post("/v1/chat/completions", json={"model": MODEL, "messages": talk})
            answers.append((await answer.json())["choices"][0]["message"]["content"])

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(ask, number)
        assert answers == ["Yes."] * 8


async def test_a_revoked_token_ends_its_streams(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="One two three four.", hang_at=3)]) as server, server.stranger() as stranger:
        secret = await server.token()
        headers = {"authorization": f"Bearer {secret}"}
        answer = await stranger.post("/v1/chat/completions", json=asks("/v1/chat/completions", stream=True), headers=headers)
        await answer.content.readline()
        (token,) = await server.engine.store.tokens.list()
        await server.state.tokens.revoke(token.id)
        with anyio.fail_after(60), pytest.raises(Exception):  # noqa: B017  the client's word for a body that breaks off
            await answer.read()


async def test_a_token_in_the_query_is_ignored(server: LiveServer) -> None:
    async with server.stranger() as stranger:
        answer = await stranger.get(f"/v1/models?api_key={await server.token()}")
        assert answer.status == 401
