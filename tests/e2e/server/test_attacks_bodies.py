"""Bodies and headers that are too large, too slow, too deep or ambiguous are rejected, and other clients are served."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from e2e.server.conftest import FIXED, LiveServer
from e2e.server.raw import asked, request, wire
from moot.server.state import Limits

pytestmark = pytest.mark.anyio

BEARER = f"authorization: Bearer {FIXED}"
JSON = "content-type: application/json"


def host_of(server: LiveServer) -> str:
    return f"host: {server.url.removeprefix('http://')}"


async def test_a_body_over_the_limit_is_rejected_before_it_is_read_completely(open_server: Callable[..., Any]) -> None:
    async with open_server(bounds=Limits(body=100_000)) as server:
        for size in (100_001, 1_000_000_000, 10**18):
            async with wire(server.url) as caller:
                head = request("POST", "/api/tokens", host_of(server), BEARER, JSON, f"content-length: {size}")
                await caller.send(head + b'{"name": "')
                assert (await caller.answer()).status == 413, size
                assert await caller.closed(), size
        async with wire(server.url) as caller:
            await caller.send(request("POST", "/api/tokens", host_of(server), BEARER, JSON, "transfer-encoding: chunked"))
            for _ in range(200):  # 20 MB in total, if the server accepted them
                await caller.send(b"%x\r\n%s\r\n" % (100_000, b" " * 100_000))
            assert (await caller.answer()).status in (0, 413)  # 0: the server closed the connection while the client was still writing
            assert await caller.closed()
        assert (await server.client.get("/api/session")).status == 200


async def test_a_request_without_a_token_is_rejected_before_its_body_arrives(server: LiveServer) -> None:
    async with wire(server.url) as caller:
        await caller.send(request("POST", "/api/tokens", host_of(server), JSON, "content-length: 30000000"))
        assert (await caller.answer()).status == 401


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_a_compressed_body_is_never_decompressed(server: LiveServer, coding: str) -> None:
    bomb = gzip.compress(b'{"name": "' + b"x" * 1_000_000 + b'"}')
    answer = await asked(
        server.url, request("POST", "/api/tokens", host_of(server), BEARER, JSON, f"content-encoding: {coding}", body=bomb)
    )
    assert answer.status in (400, 415)


async def test_a_body_that_stops_arriving_times_out_and_other_clients_are_served(open_server: Callable[..., Any]) -> None:
    async with open_server(bounds=Limits(silence=0.3)) as server, wire(server.url) as slow:
        await slow.send(request("POST", "/api/tokens", host_of(server), BEARER, JSON, "content-length: 100") + b"{")
        assert (await server.client.get("/api/session")).status == 200
        answer = await slow.answer()
        assert answer.status == 408
        assert await slow.closed()


async def test_headers_that_stop_arriving_time_out_and_other_clients_are_served(open_server: Callable[..., Any]) -> None:
    async with (
        open_server(bounds=Limits(head=0.4)) as server,
        wire(server.url) as silent,
        wire(server.url) as slow,
        wire(server.url) as blank,
        wire(server.url) as again,
    ):
        await slow.send(b"GET /api/session HTTP/1.1\r\nx-a: ")
        await blank.send(b"\r\n\r\n\r\n")
        await again.send(request("GET", "/healthz", host_of(server)))
        assert (await again.answer()).status == 200
        await again.send(b"GET /healthz HTT")
        assert (await server.client.get("/api/session")).status == 200
        assert (await slow.answer()).status == 408
        assert await slow.closed() and await silent.closed() and await blank.closed()
        assert (await again.answer()).status == 408 and await again.closed()


async def test_endless_headers_are_rejected(server: LiveServer) -> None:
    endless = {
        "a line": b"GET /" + b"a" * 1_000_000,
        "a header": b"GET / HTTP/1.1\r\n" + host_of(server).encode() + b"\r\nx-a: " + b"a" * 1_000_000,
        "headers": b"GET / HTTP/1.1\r\n" + host_of(server).encode() + b"\r\n" + b"x-a: b\r\n" * 100_000,
        "many headers": b"GET / HTTP/1.1\r\n" + host_of(server).encode() + b"\r\n" + b"a:b\r\n" * 200 + b"\r\n",
        "a cookie": request("GET", "/", host_of(server), "cookie: " + "a=b; " * 20_000),
        "trailers": request("POST", "/api/login", host_of(server), "transfer-encoding: chunked") + b"0\r\n" + b"x-a: b\r\n" * 100_000,
    }
    for name, data in endless.items():
        async with wire(server.url) as caller:
            await caller.send(data)
            assert (await caller.answer()).status in (0, 400, 401, 404, 422, 431), name
            assert await caller.closed(), name
    assert (await server.client.get("/api/session")).status == 200


NO_JSON: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"name": "a"',
    "two": b'{"name": "a"}{"name": "b"}',
    "single quotes": b"{'name': 'a'}",
    "a comment": b'{"name": "a" /* b */}',
    "a comma behind": b'{"name": "a",}',
    "NaN": b'{"name": "a", "expires_in": NaN}',
    "infinity": b'{"name": "a", "expires_in": -Infinity}',
    "duplicate keys": b'{"name": "a", "name": "b"}',
    "duplicate keys by escapes": b'{"name": "a", "na\\u006de": "b"}',
    "duplicate keys deep down": b'{"name": "a", "user": [{"x": 1, "x": 2}]}',
    "depth": b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "depth of objects": b'{"name": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "open depth": b"[" * 1_000_000,
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a null byte": b'{"name": "a\x00b"}',
    "a control character": b'{"name": "a\nb"}',
    "overlong UTF-8": b'{"name": "\xc0\xaf"}',
}

NOT_WANTED: dict[str, bytes] = {
    "a huge number": b'{"name": "a", "expires_in": ' + b"9" * 4000 + b"}",
    "a number without end": b'{"name": "a", "expires_in": ' + b"9" * 1_000_000 + b"}",
    "a large exponent": b'{"name": "a", "expires_in": 1e999999}',
    "a fraction": b'{"name": "a", "expires_in": 1.5}',
    "a list": b"[]",
    "null": b"null",
    "a string": b'"name"',
    "an unknown key": b'{"name": "a", "__proto__": {"admin": true}}',
    "a wrong scope": b'{"name": "a", "scopes": ["root"]}',
    "a name without end": b'{"name": "' + b"x" * 100_000 + b'"}',
    "a name that is a number": b'{"name": 5}',
    "lone surrogate in a key": b'{"name": "a", "\\ud800": 1}',
}


async def test_invalid_or_ambiguous_json_is_rejected_with_an_explanation(server: LiveServer) -> None:
    before = len((await (await server.client.get("/api/tokens")).json())["data"])
    for name, body in NO_JSON.items():
        answer = await asked(
            server.url,
            request("POST", "/api/tokens", host_of(server), BEARER, JSON, "content-length: 0" if not body else "x-a: b", body=body),
        )
        assert (answer.status, answer.headers["content-type"]) == (422 if not body else 400, "application/problem+json"), (name, answer)
    for name, body in NOT_WANTED.items():
        answer = await asked(server.url, request("POST", "/api/tokens", host_of(server), BEARER, JSON, body=body))
        assert (answer.status, answer.headers["content-type"]) in ((400, "application/problem+json"), (422, "application/problem+json")), (
            name,
            answer,
        )
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = await asked(
            server.url, request("POST", "/api/tokens", host_of(server), BEARER, f"content-type: {kind}", body=b'{"name": "a"}')
        )
        assert answer.status in (400, 415, 422), kind
    assert len((await (await server.client.get("/api/tokens")).json())["data"]) == before


async def test_a_lone_surrogate_is_rejected_or_returned_and_never_breaks_a_response(server: LiveServer) -> None:
    answer = await asked(server.url, request("POST", "/api/tokens", host_of(server), BEARER, JSON, body=b'{"name": "a\\ud800b"}'))
    assert answer.status in (201, 400, 422)
    answer.body.decode()
    listed = await server.client.get("/api/tokens")
    assert listed.status == 200
    await listed.json()


async def test_two_hundred_unfinished_requests_do_not_block_other_clients(server: LiveServer) -> None:
    stuck = [await wire(server.url).__aenter__() for _ in range(200)]
    try:
        for caller in stuck:
            await caller.send(request("POST", "/api/tokens", host_of(server), BEARER, JSON, "content-length: 100") + b"{")
        answer = await asked(server.url, request("GET", "/api/session", host_of(server), BEARER))
        assert answer.status == 200
    finally:
        for caller in stuck:
            caller.writer.transport.abort()
