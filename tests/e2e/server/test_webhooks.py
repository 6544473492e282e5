"""Incoming webhooks: only authentic deliveries start a run, each of them once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import LiveServer
from moot.config.settings import Webhook
from moot.features.webhooks.receiver import LONGEST, signature_of
from moot.testing.script import Reply, ToolCall
from moot.types.message import text_of

pytestmark = pytest.mark.anyio

SECRET = "a-secret-of-a-webhook"
ISSUE = {"issue": {"title": "It fails", "labels": ["bug", "ui"]}, "repository": "shop"}


def webhooks(**changes: Any) -> dict[str, Webhook]:
    return {"issues": Webhook(**{"prompt": "Issue: {{issue.title}} ({{ issue.labels.1 }}{{missing}})", "secret": SECRET, **changes})}


def signed(body: bytes, *, id: str = "d1", at: float | None = None, secret: str = SECRET) -> dict[str, str]:
    timestamp = str(int(time.time() if at is None else at))
    return {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature_of(secret.encode(), id, timestamp, body),
        "content-type": "application/json",
    }


async def send(server: LiveServer, body: Any = ISSUE, headers: dict[str, str] | None = None, query: str = "") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = signed(data) if headers is None else headers
    async with server.stranger() as stranger:
        answer = await stranger.post(f"/api/webhooks/issues{query}", data=BytesIO(data), headers=headers)
        return answer.status, await answer.json(content_type=None)


async def prompts(server: LiveServer, conversation: str) -> list[str]:
    return [text_of(one.parts) for one in await server.engine.store.conversations.branch(conversation) if one.role == "user"]


async def test_a_signed_delivery_starts_a_run_and_its_repetition_does_not(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Noted.", times=0)], webhooks=webhooks()) as server:
        body = json.dumps(ISSUE).encode()
        headers = signed(body)
        status, made = await send(server, body, headers)
        assert (status, made["url"]) == (202, f"/api/runs/{made['run']}")
        run = await server.engine.runs.wait(made["run"])
        assert (run.status, run.trigger) == ("finished", "webhook")
        assert await prompts(server, made["conversation"]) == ["Issue: It fails (ui)"]
        for again in (headers, signed(body, at=time.time() + 1)):
            status, repeated = await send(server, body, again, "?wait=60")
            assert (status, repeated["run"], repeated["text"]) == (200, made["run"], "Noted.")
        assert len(server.model.requests) == 1


async def test_what_is_not_authentic_or_old_starts_nothing(open_server: Callable[..., Any]) -> None:
    async with open_server(webhooks=webhooks()) as server:
        body = json.dumps(ISSUE).encode()
        good = signed(body)
        wrong = [
            {},
            signed(body, secret="another-secret-entirely"),
            signed(body, at=time.time() - 400),
            signed(body, at=time.time() + 400),
            signed(b"{}"),
            {**good, "webhook-id": "d2"},
            {**good, "webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)},
            {**good, "webhook-timestamp": "soon"},
            {**good, "webhook-signature": "sha256="},
            {"authorization": f"Bearer {SECRET}"},
        ]
        for headers in wrong:
            status, problem = await send(server, body, headers)
            assert (status, problem["code"], SECRET in json.dumps(problem)) == (401, "unauthorized", False), headers
        assert (await server.engine.store.conversations.list()).items == [] and server.model.requests == []


@pytest.mark.parametrize("secret", ["", "short"])
async def test_a_webhook_without_a_good_secret_accepts_nothing(open_server: Callable[..., Any], secret: str) -> None:
    async with open_server(webhooks=webhooks(secret=secret, auth="bearer")) as server:
        assert (await send(server, headers={"authorization": f"Bearer {secret}"}))[0] == 401


async def test_a_bearer_secret_from_a_file_and_a_topic_continue_one_conversation(open_server: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    hooked = webhooks(secret="", secret_file=str(file), auth="bearer", conversation="{{repository}}", delivery="{{issue.title}}")
    async with open_server([Reply(text="Noted.", times=0)], webhooks=hooked) as server:
        headers = {"authorization": f"Bearer {SECRET}"}
        _, first = await send(server, headers=headers, query="?wait=60")
        other = {**ISSUE, "issue": {"title": "Another", "labels": ["x", "y"]}}
        _, second = await send(server, other, headers, "?wait=60")
        _, repeated = await send(server, headers=headers, query="?wait=60")
        assert first["conversation"] == second["conversation"] and repeated["run"] == first["run"]
        assert await prompts(server, first["conversation"]) == ["Issue: It fails (ui)", "Issue: Another (y)"]


@pytest.mark.parametrize(("unattended", "status"), [("deny", "finished"), ("ask", "waiting")])
async def test_a_call_that_needs_approval_is_denied_unless_the_webhook_may_wait(
    open_server: Callable[..., Any], unattended: str, status: str
) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "touch made"})]), Reply(text="end", times=0)]
    async with open_server(script, mode="ask", webhooks=webhooks(unattended=unattended)) as server:
        _, made = await send(server, query="?wait=60")
        assert made["status"] == status


async def test_bad_deliveries_get_clear_errors(open_server: Callable[..., Any]) -> None:
    async with open_server(webhooks=webhooks()) as server:
        status, problem = await send(server, b'{"a": 1, "a": 2}')
        assert (status, "not valid JSON" in problem["detail"]) == (400, True)
        body = json.dumps(ISSUE).encode()
        status, problem = await send(server, body, signed(body, id="x" * 201))
        assert (status, "at most 200 printable characters" in problem["detail"]) == (400, True)
        status, problem = await send(server, b'"' + b"x" * LONGEST + b'"')
        assert (status, "at most 1,048,576 bytes" in problem["detail"]) == (413, True)
        status, problem = await send(server, {"issue": 1})
        assert status == 202
        status, problem = await send(server, {"surrogate": 1}, query="?wait=301")
        assert status == 422


async def test_a_prompt_without_content_is_refused_and_half_a_character_does_no_harm(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="ok", times=0)], webhooks=webhooks(prompt="{{text}}")) as server:
        status, problem = await send(server, {"other": "x"})
        assert (status, "prompt is empty" in problem["detail"]) == (400, True)
        assert server.model.requests == []
        status, made = await send(server, b'{"text": "half \\ud83d of it"}', query="?wait=60")
        assert (status, made["text"]) == (200, "ok")


async def test_an_unknown_or_disabled_name_is_refused_like_a_wrong_secret(open_server: Callable[..., Any]) -> None:
    hooked = {**webhooks(), "off": Webhook("x", secret=SECRET, enabled=False), "open": Webhook("x", secret=SECRET, auth="bearer")}
    async with open_server(webhooks=hooked) as server, server.stranger() as stranger:
        body = json.dumps(ISSUE).encode()
        answers: list[Any] = []
        for name, headers in (
            ("issues", signed(body, secret="another-secret-entirely")),
            ("issues", {"content-type": "application/json"}),
            ("open", {"authorization": f"Bearer {SECRET}x"}),
            ("off", signed(body)),
            ("unknown", signed(body)),
            ("unknown", {}),
        ):
            answer = await stranger.post(f"/api/webhooks/{name}", data=body, headers=headers)
            problem = await answer.json(content_type=None)
            shown = {key: value for key, value in problem.items() if key not in ("instance", "request_id")}
            answers.append((answer.status, shown, sorted(key for key in answer.headers)))
        assert all(answer == answers[0] for answer in answers), answers
        assert answers[0][0] == 401


async def test_a_delivery_that_arrives_many_times_at_once_starts_one_run(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Noted.", times=0)], webhooks=webhooks()) as server:
        body = json.dumps(ISSUE).encode()
        headers = signed(body)
        answers = await asyncio.gather(*(send(server, body, headers, f"?wait={60 * (at % 2)}") for at in range(12)))
        assert len({made["run"] for _, made in answers}) == 1 and {status for status, _ in answers} == {200, 202}
        assert len(server.model.requests) == 1


async def test_an_identity_and_a_secret_in_any_language_are_understood(open_server: Callable[..., Any]) -> None:
    hooked = webhooks(secret="ein-schlüssel-für-alle", auth="bearer")
    async with open_server([Reply(text="Noted.", times=0)], webhooks=hooked) as server:
        headers = {"authorization": "Bearer ein-schlüssel-für-alle", "webhook-id": "größe"}
        (_, first), (_, again) = await send(server, headers=headers), await send(server, headers=headers)
        assert first["run"] == again["run"]


@pytest.mark.parametrize("auth", ["hmac", "bearer"])
async def test_secrets_are_in_no_log_and_no_row(
    open_server: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, auth: str
) -> None:
    caplog.set_level(0)
    async with open_server([Reply(text="Noted.", times=0)], webhooks=webhooks(auth=auth)) as server:
        bearer = {"authorization": f"Bearer {SECRET}"}
        await send(server, headers=bearer if auth == "bearer" else None, query="?wait=60")
        await send(server, b"{", signed(b"{") if auth == "hmac" else bearer)
        await send(server, headers={"authorization": f"Bearer {SECRET} "} if auth == "hmac" else signed(b""))
    assert SECRET not in caplog.text
    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []
