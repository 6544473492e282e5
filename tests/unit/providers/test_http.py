from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing
from dataclasses import replace

import pytest

from moot.config.settings import ProviderSettings
from moot.providers.endpoints.servers import Custom
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer
from moot.types.provider import ModelRequest
from unit.providers.endpoint import KEY, REQUEST, answered, heard, raw_server

pytestmark = pytest.mark.anyio


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_is_the_raw_frames_of_the_body() -> None:
    async with ScriptedServer([Reply(text="Hello, world.")]) as server:
        raws, error = await heard(Custom(server.provider()), replace(REQUEST, idempotency_key="run/llm:0.0"))
    assert error is None
    assert raws[-1] == b"data: [DONE]\n\n"
    assert all(raw.startswith(b"data: {") and raw.endswith(b"}\n\n") for raw in raws[:-1])
    asked = server.requests[0]
    assert asked.body == REQUEST.body
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer scripted-key"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["idempotency-key"] == "run/llm:0.0"


async def test_anthropic_shape_has_its_own_path_and_key_header() -> None:
    async with ScriptedServer([Reply(text="Hello."), Reply(text="Hello.")]) as server:
        settings = server.provider(dialect="anthropic")
        raws, _ = await heard(Custom(settings))
        await heard(Custom(replace(settings, base_url=f"{settings.base_url}/v1/")))
    assert raws[0].startswith(b"event: message_start\ndata: {")
    assert [asked.path for asked in server.requests] == ["/v1/messages", "/v1/messages"]
    assert server.requests[0].headers["x-api-key"] == "scripted-key"
    assert server.requests[0].headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in server.requests[0].headers


async def test_a_request_over_a_megabyte_is_sent_completely_without_a_warning() -> None:
    body = b'{"messages": [], "image": "' + b"A" * 3_000_000 + b'"}'
    async with ScriptedServer([Reply(text="Seen.")]) as server:
        _, error = await heard(Custom(server.provider()), ModelRequest(body, "scripted"))
    assert error is None
    assert server.requests[0].body == body


async def test_configured_headers_are_sent_and_can_replace_ours() -> None:
    async with ScriptedServer([Reply()]) as server:
        await heard(Custom(server.provider(headers={"X-Team": "blue", "Authorization": "Basic eHg="})))
    assert server.requests[0].headers["x-team"] == "blue"
    assert server.requests[0].headers["authorization"] == "Basic eHg="


async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    _, error = await answered(Reply(text="Direct."))
    assert error is None


async def test_proxy_of_the_entry_is_used() -> None:
    async with ScriptedServer([Reply(text="By proxy.")]) as proxy:
        settings = ProviderSettings("mine", base_url="http://model.invalid/v1", options={"proxy": proxy.url})
        raws, error = await heard(Custom(settings))
    assert error is None
    assert raws
    assert proxy.requests[0].headers["host"] == "model.invalid"


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "kind", "retryable", "after"),
    [
        (Reply(status=401), "auth", False, None),
        (Reply(status=429, retry_after=3), "rate_limit", True, 3.0),
        (Reply(status=429, retry_after=1e9), "rate_limit", True, 1e9),
        (Reply(status=500), "overloaded", True, None),
        (Reply(status=529, retry_after="soon"), "overloaded", True, None),
        (Reply(status=400, error_code="context_length_exceeded"), "context_too_long", False, None),
        (Reply(status=404, error="no such model"), "invalid_request", False, None),
        (Reply(status=503, raw=b"<html>busy</html>", content_type="text/html"), "overloaded", True, None),
        (Reply(status=302, headers={"Location": "http://elsewhere.invalid/v1"}), "protocol", False, None),
    ],
)
async def test_refusal_is_a_typed_error_before_the_first_frame(reply: Reply, kind: str, retryable: bool, after: float | None) -> None:
    raws, error = await answered(reply)
    assert raws == []
    assert error is not None
    assert (error.kind, error.retryable, error.retry_after, error.status) == (kind, retryable, after, reply.status)
    assert error.raw


async def test_refusal_that_echoes_the_key_is_masked_in_every_place() -> None:
    async with ScriptedServer([Reply(status=401, error=f"Incorrect API key provided: {KEY}.")]) as server:
        _, error = await heard(Custom(server.provider(api_key=KEY)))
    assert error is not None
    assert error.__cause__ is None
    assert KEY not in f"{error} {error!r} {error.message} {error.fix}"
    assert KEY.encode() not in error.raw
    assert b"*" * len(KEY) in error.raw


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""], ids=["whole", "without a blank line", "cut"])
async def test_a_key_in_the_stream_is_masked_without_moving_bytes(end: bytes) -> None:
    body = b'data: {"error": {"message": "bad key %s"}}' % KEY.encode() + end
    async with ScriptedServer([Reply(raw=body)]) as server:
        raws, _ = await heard(Custom(server.provider(api_key=KEY)))
    assert raws == [body.replace(KEY.encode(), b"*" * len(KEY))]


async def test_key_never_follows_a_redirect() -> None:
    async with ScriptedServer([Reply(text="Stolen.")]) as other:
        reply = Reply(status=307, headers={"Location": f"{other.url}/v1/chat/completions"})
        _, error = await answered(reply)
    assert error is not None
    assert other.requests == []
    assert f"127.0.0.1:{other.port}" in error.fix


async def test_a_huge_error_body_is_truncated() -> None:
    _, error = await answered(Reply(status=500, raw=b"x" * 1_000_000))
    assert error is not None
    assert len(error.raw) == 65_536


async def test_a_slow_error_body_is_not_awaited() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.1)

    async with raw_server(drip) as settings:
        async with asyncio.timeout(60):
            _, error = await heard(Custom(settings))
    assert error is not None
    assert error.kind == "overloaded"
    assert error.raw.strip(b"x") == b""


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_closing_the_stream_disconnects() -> None:
    async with ScriptedServer([Reply(text="Hello there.", hang_at=2)]) as server:
        provider = Custom(server.provider())
        async with aclosing(provider.stream(REQUEST)) as reads:
            await anext(reads)
            assert provider.live == 1
        assert provider.live == 0
        await asyncio.wait_for(server.requests[0].done.wait(), 60)
        assert server.requests[0].hung_up
        await provider.close()


async def test_cancelling_the_reader_disconnects_within_a_second() -> None:
    async with ScriptedServer([Reply(text="Hello there.", hang_at=2)]) as server:
        provider = Custom(server.provider())
        task = asyncio.create_task(heard(provider))
        while not server.requests or server.requests[0].sent == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)
        await asyncio.wait_for(server.requests[0].done.wait(), 60)


async def test_a_refused_connection_is_a_transport_error() -> None:
    async with ScriptedServer() as server:
        settings = server.provider()
    _, error = await heard(Custom(settings))
    assert error is not None
    assert (error.kind, error.retryable) == ("transport", True)
    assert f"127.0.0.1:{server.port}" in error.message


async def test_an_unknown_host_is_a_transport_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # the network guard treats `.localhost` as this machine, and no resolver here knows the name
    _, error = await heard(Custom(ProviderSettings("mine", base_url="http://no-such-name.localhost:1/v1")))
    assert error is not None
    assert (error.kind, error.retryable) == ("transport", True)


async def test_https_to_a_plain_server_is_a_transport_error() -> None:
    async with ScriptedServer() as server:
        _, error = await heard(Custom(ProviderSettings("mine", base_url=f"https://127.0.0.1:{server.port}/v1")))
    assert error is not None
    assert (error.kind, error.retryable) == ("transport", True)
    assert ssl.SSLError.__name__ not in error.message


@pytest.mark.parametrize(
    "words", [b"", b"SSH-2.0-nothing\r\n\r\n", b"HTTP/1.1 999999 What\r\n\r\n", b"HTTP/1.1 200 OK\r\nBad header\r\n\r\n"]
)
async def test_invalid_http_is_a_transport_error(words: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)

    async with raw_server(speak) as settings:
        _, error = await heard(Custom(settings))
    assert error is not None
    assert (error.kind, error.retryable) == ("transport", True)
    assert KEY not in str(error)


async def test_silence_before_the_status_line_is_a_timeout() -> None:
    async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)

    async with raw_server(nothing) as settings:
        _, error = await heard(Custom(settings))
    assert error is not None
    assert (error.kind, error.retryable) == ("timeout", True)


async def test_connections_are_reused_and_closed() -> None:
    async with ScriptedServer([Reply(text="One."), Reply(text="Two.")]) as server:
        provider = Custom(server.provider())
        for _ in range(2):
            async with aclosing(provider.stream(REQUEST)) as reads:
                assert [raw async for read in reads for raw in read]
        await provider.close()
        await provider.close()
    assert len(server.requests) == 2
