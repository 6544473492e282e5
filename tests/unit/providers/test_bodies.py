from __future__ import annotations

import asyncio
import gzip
from contextlib import aclosing
from dataclasses import replace

import pytest

from moot.providers.endpoints.servers import Custom
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer
from unit.providers.endpoint import REQUEST, answered, heard, raw_server

pytestmark = pytest.mark.anyio

RECORDED = (
    b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"h\xc3\xa9"}}]}\r\n\r\n: keep-alive\n\n'
    b'event: x\ndata: {"a":\ndata: 1}\n\ndata: \xff\xfe\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.slow
async def test_a_stream_cut_at_any_byte_yields_all_bytes_and_a_typed_error() -> None:
    replies = [Reply(raw=RECORDED, cut_at_byte=end, write_size=11) for end in range(len(RECORDED))]
    async with ScriptedServer(replies) as server:
        provider = Custom(server.provider())
        for end in range(len(RECORDED)):
            raws, error = await heard(provider)
            assert b"".join(raws) == RECORDED[:end]
            assert error is not None, end
            assert (error.kind, error.retryable) == ("transport", True)


async def test_a_stream_that_ends_early_yields_its_tail() -> None:
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
async def test_any_successful_body_is_passed_on_unchanged(body: bytes, expected: list[bytes], write_size: int) -> None:
    assert await answered(Reply(raw=body, write_size=write_size)) == (expected, None)


async def test_a_line_of_five_megabytes_is_passed_on() -> None:
    line = b'data: {"content": "' + b"x" * 5_000_000 + b'"}\n\n'
    assert await answered(Reply(raw=line + b"data: [DONE]\n\n", write_size=300_000)) == ([line, b"data: [DONE]\n\n"], None)


async def test_compressed_stream_is_decoded() -> None:
    body = b"data: a\n\ndata: b\n\n"
    raws, error = await answered(Reply(raw=gzip.compress(body), headers={"Content-Encoding": "gzip"}))
    assert (raws, error) == ([b"data: a\n\n", b"data: b\n\n"], None)


async def test_an_endless_line_is_rejected_at_the_frame_limit() -> None:
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


async def test_frames_before_an_error_are_yielded_first() -> None:
    raws, error = await answered(Reply(text="Hello there.", hang_at=3, chunk_size=4), timeout=0.2)
    assert len(raws) == 3
    assert error is not None
    assert (error.kind, error.retryable) == ("timeout", True)
    assert "0.2 s" in error.message


async def test_a_slow_reader_does_not_cause_a_timeout() -> None:
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


async def test_small_frames_are_read_in_batches() -> None:
    async with ScriptedServer([Reply(text="a word " * 20, chunk_size=7, delay=0.003)]) as server:
        provider = Custom(server.provider())
        async with aclosing(provider.stream(REQUEST)) as stream:
            reads = [raws async for raws in stream]
        await provider.close()
    frames = [raw for raws in reads for raw in raws]
    assert b"".join(frames).count(b"a word ") == 20
    assert len(reads) < len(frames) - 3
