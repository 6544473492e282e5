from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError, ProviderError
from moot.providers._http import HttpProvider
from moot.providers.custom import Custom
from moot.providers.ollama import Ollama
from moot.providers.zhipu import Zhipu
from moot.testing.scripted import Reply, ScriptedServer
from moot.types.provider import ModelRequest

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(b'{"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "stream": true}', "scripted")
KEY = "sk-very-secret-0123456789"


async def heard(provider: HttpProvider, request: ModelRequest = REQUEST) -> tuple[list[bytes], ProviderError | None]:
    """All raws of one exchange and the error that ended it; the provider is closed after it."""
    raws: list[bytes] = []
    try:
        async with aclosing(provider.stream(request)) as reads:
            async for read in reads:
                assert read, "an empty tuple says nothing"
                raws.extend(read)
    except ProviderError as error:
        return raws, error
    finally:
        await provider.close()
    return raws, None


async def answered(reply: Reply, **settings: object) -> tuple[list[bytes], ProviderError | None]:
    async with ScriptedServer([reply]) as server:
        return await heard(Custom(server.provider(**settings)))


@asynccontextmanager
async def raw_server(answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]) -> AsyncIterator[ProviderSettings]:
    """A server below HTTP, for what no HTTP server would do."""

    tasks: list[asyncio.Task[object]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)  # type: ignore[misc]
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield ProviderSettings("mine", base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, timeout=0.3)
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_answer_comes_as_raw_frames_of_the_body() -> None:
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


async def test_request_over_a_megabyte_goes_out_whole_and_without_a_warning() -> None:
    body = b'{"messages": [], "image": "' + b"A" * 3_000_000 + b'"}'
    async with ScriptedServer([Reply(text="Seen.")]) as server:
        _, error = await heard(Custom(server.provider()), ModelRequest(body, "scripted"))
    assert error is None
    assert server.requests[0].body == body


async def test_own_headers_go_along_and_may_replace_ours() -> None:
    async with ScriptedServer([Reply()]) as server:
        await heard(Custom(server.provider(headers={"X-Team": "blue", "Authorization": "Basic eHg="})))
    assert server.requests[0].headers["x-team"] == "blue"
    assert server.requests[0].headers["authorization"] == "Basic eHg="


async def test_proxy_variables_of_the_environment_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_key_in_the_stream_is_masked_and_nothing_moves() -> None:
    body = b'data: {"error": {"message": "bad key %s"}}\n\n' % KEY.encode()
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


async def test_huge_refusal_is_cut_and_a_hanging_one_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, error = await answered(Reply(status=500, raw=b"x" * 1_000_000))
    assert error is not None
    assert len(error.raw) == 65_536

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        await asyncio.sleep(2)

    async with raw_server(half) as settings:
        _, error = await heard(Custom(settings))
    assert error is not None
    assert (error.kind, error.raw) == ("overloaded", b"half")


# ── bodies ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

RECORDED = (
    b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"h\xc3\xa9"}}]}\r\n\r\n: keep-alive\n\n'
    b'event: x\ndata: {"a":\ndata: 1}\n\ndata: \xff\xfe\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


async def test_stream_cut_at_every_byte_gives_every_byte_and_a_typed_error() -> None:
    replies = [Reply(raw=RECORDED, cut_at_byte=end, write_size=11) for end in range(len(RECORDED))]
    async with ScriptedServer(replies) as server:
        provider = Custom(server.provider())
        for end in range(len(RECORDED)):
            raws, error = await heard(provider)
            assert b"".join(raws) == RECORDED[:end]
            assert error is not None, end
            assert (error.kind, error.retryable) == ("transport", True)


async def test_stream_that_ends_early_without_a_fault_ends_quietly_with_its_tail() -> None:
    raws, error = await answered(Reply(raw=RECORDED, end_at_byte=80))
    assert error is None
    assert b"".join(raws) == RECORDED[:80]
    assert not raws[-1].endswith(b"\n\n")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b"<!doctype html>\n\n<p>hello</p>\n\n", [b"<!doctype html>\n\n<p>hello</p>\n\n"]),
        (b'{"error":\n\n{"message": "no"}}', [b'{"error":\n\n{"message": "no"}}']),
        (b": keep-alive\n\n: keep-alive\n\n", [b": keep-alive\n\n", b": keep-alive\n\n"]),
        (b"\n\n\n\n", [b"\n\n\n\n"]),
        (b"data: half an ev", [b"data: half an ev"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"data: a\r\n\r\n", b"data: b\r\n\r\n"]),
    ],
)
@pytest.mark.parametrize("write_size", [0, 1])
async def test_any_body_of_a_success_comes_through_as_it_is(body: bytes, expected: list[bytes], write_size: int) -> None:
    assert await answered(Reply(raw=body, write_size=write_size)) == (expected, None)


async def test_five_megabytes_on_one_line_come_through() -> None:
    line = b'data: {"content": "' + b"x" * 5_000_000 + b'"}\n\n'
    assert await answered(Reply(raw=line + b"data: [DONE]\n\n", write_size=300_000)) == ([line, b"data: [DONE]\n\n"], None)


async def test_compressed_stream_is_decoded() -> None:
    body = b"data: a\n\ndata: b\n\n"
    raws, error = await answered(Reply(raw=gzip.compress(body), headers={"Content-Encoding": "gzip"}))
    assert (raws, error) == ([b"data: a\n\n", b"data: b\n\n"], None)


async def test_endless_line_is_stopped_at_the_frame_limit() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")
        block = b"x" * 1_000_000
        sent = 0
        try:
            while sent < 1_000_000_000:
                writer.write(block)
                await writer.drain()
                sent += len(block)
        except ConnectionError:
            assert sent < 100_000_000

    async with raw_server(endless) as settings:
        raws, error = await heard(Custom(replace(settings, timeout=5)))
    assert raws == []
    assert error is not None
    assert (error.kind, error.retryable) == ("protocol", False)
    assert len(error.raw) == 65_536


async def test_what_came_before_a_fault_is_given_first() -> None:
    raws, error = await answered(Reply(text="Hello there.", hang_at=3, chunk_size=4), timeout=0.2)
    assert len(raws) == 3
    assert error is not None
    assert (error.kind, error.retryable) == ("timeout", True)
    assert "0.2 s" in error.message


async def test_slow_reader_is_no_silence() -> None:
    async with ScriptedServer([Reply(raw=b"data: x\n\n" * 200_000, write_size=65_536)]) as server:
        provider = Custom(server.provider(timeout=0.2))
        count = 0
        async with aclosing(provider.stream(REQUEST)) as reads:
            async for read in reads:
                if not count:
                    await asyncio.sleep(0.5)
                count += len(read)
        await provider.close()
    assert count == 200_000


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_closing_the_stream_hangs_up() -> None:
    async with ScriptedServer([Reply(text="Hello there.", hang_at=2)]) as server:
        provider = Custom(server.provider())
        async with aclosing(provider.stream(REQUEST)) as reads:
            await anext(reads)
            assert provider.live == 1
        assert provider.live == 0
        await asyncio.wait_for(server.requests[0].done.wait(), 2)
        assert server.requests[0].hung_up
        await provider.close()


async def test_cancelling_the_reader_hangs_up_within_a_second() -> None:
    async with ScriptedServer([Reply(text="Hello there.", hang_at=2)]) as server:
        provider = Custom(server.provider())
        task = asyncio.create_task(heard(provider))
        while not server.requests or server.requests[0].sent == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 1)
        await asyncio.wait_for(server.requests[0].done.wait(), 1)


async def test_nobody_listening_is_a_transport_error() -> None:
    async with ScriptedServer() as server:
        settings = server.provider()
    _, error = await heard(Custom(settings))
    assert error is not None
    assert (error.kind, error.retryable) == ("transport", True)
    assert f"127.0.0.1:{server.port}" in error.message


async def test_name_that_is_not_found_is_a_transport_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # `.localhost` is this machine to the network guard, and no resolver here knows the name
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
async def test_what_is_no_http_is_a_transport_error(words: bytes) -> None:
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


async def test_connection_is_used_again_and_closing_leaves_nothing_open() -> None:
    async with ScriptedServer([Reply(text="One."), Reply(text="Two.")]) as server:
        provider = Custom(server.provider())
        for _ in range(2):
            async with aclosing(provider.stream(REQUEST)) as reads:
                assert [raw async for read in reads for raw in read]
        await provider.close()
        await provider.close()
    assert len(server.requests) == 2


# ── configuration ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url", ["ftp://host/v1", "127.0.0.1:9000", "http://", "http://host:99999/v1", "http://host:x/v1", "http://me:pw@host/v1"]
)
def test_base_url_that_is_none_is_a_config_error_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url of provider 'mine'") as caught:
        Custom(ProviderSettings("mine", base_url=url))
    assert "pw" not in caught.value.message


def test_endpoint_of_ones_own_needs_a_base_url() -> None:
    with pytest.raises(ConfigError, match="no base_url"):
        Custom(ProviderSettings("mine"))


def test_unknown_dialect_and_plan_are_config_errors() -> None:
    with pytest.raises(ConfigError, match="unknown dialect 'klingon'; known: anthropic, openai-chat"):
        Custom(ProviderSettings("mine", dialect="klingon", base_url="http://host"))
    with pytest.raises(ConfigError, match="no plan 'code'; known: china, china-coding, coding"):
        Zhipu(ProviderSettings("zhipu", plan="code"))


def test_plan_chooses_its_own_address_unless_one_is_given() -> None:
    assert Zhipu(ProviderSettings("zhipu", plan="coding")).base.geturl() == "https://api.z.ai/api/coding/paas/v4"
    assert Zhipu(ProviderSettings("zhipu", plan="coding", base_url="http://host/x/")).base.geturl() == "http://host/x"


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:11434", "http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1"])
def test_ollama_adds_the_version_itself(url: str) -> None:
    assert Ollama(ProviderSettings("ollama", base_url=url)).base.geturl() == "http://127.0.0.1:11434/v1"


async def test_key_with_a_line_break_is_refused_without_showing_it() -> None:
    provider = Custom(ProviderSettings("mine", base_url="http://127.0.0.1:1/v1", api_key="secret-one\nsecret-two"))
    with pytest.raises(ConfigError, match="header 'Authorization'") as caught:
        await heard(provider)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("quirks", [{"max_tokns": "x"}, ["max_tokens"], {"max_tokens": 3}, {"stream_usage": "yes"}])
def test_quirk_that_is_none_is_a_config_error(quirks: object) -> None:
    with pytest.raises(ConfigError, match="quirks"):
        Custom(ProviderSettings("mine", base_url="http://host", options={"quirks": quirks}))  # type: ignore[dict-item]


def test_quirks_of_the_entry_hold() -> None:
    custom = Custom(ProviderSettings("mine", base_url="http://host", options={"quirks": {"max_tokens": "max_completion_tokens"}}))
    assert custom.quirks.max_tokens == "max_completion_tokens"


# ── lists ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_endpoint_lists_its_models() -> None:
    async with ScriptedServer(models=("big", "small")) as server:
        provider = Custom(server.provider())
        assert [str(model.id) for model in await provider.models()] == ["big@mine", "small@mine"]
        await provider.close()


@pytest.mark.parametrize(
    ("head", "body", "kind"),
    [
        ("200 OK", b"<html>", "protocol"),
        ("200 OK", b"{}", "protocol"),
        ("200 OK", b'{"data": {"id": "x"}}', "protocol"),
        ("401 No", b'{"error": "no"}', "auth"),
    ],
)
async def test_list_that_is_none_is_a_typed_error(head: str, body: bytes, kind: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (head.encode(), len(body), body))

    async with raw_server(speak) as settings:
        provider = Custom(settings)
        with pytest.raises(ProviderError) as caught:
            await provider.models()
        await provider.close()
    assert caught.value.kind == kind


async def test_ollama_listens_only_when_it_answers_with_a_model() -> None:
    async with ScriptedServer(models=("qwen3:4b",)) as server:
        ollama = Ollama(ProviderSettings("ollama", base_url=server.url))
        assert await ollama.listening()
        await ollama.close()
    gone = Ollama(ProviderSettings("ollama", base_url=server.url))
    assert not await gone.listening()
    await gone.close()
    async with ScriptedServer(models=()) as empty:
        ollama = Ollama(ProviderSettings("ollama", base_url=empty.url))
        assert not await ollama.listening()
        await ollama.close()
