"""DNS rebinding, foreign origins, request smuggling and path traversal: the checks before every route."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from e2e.server.conftest import FIXED, LiveServer
from e2e.server.raw import asked, request, wire
from moot.config.settings import ServerSettings

pytestmark = pytest.mark.anyio

BEARER = f"authorization: Bearer {FIXED}"


async def cookie_of(server: LiveServer) -> str:
    """Sign in and return the browser's cookie header."""
    async with server.stranger() as browser:
        answer = await browser.post("/api/login", json={"code": await server.state.tokens.code("local")})
        return f"cookie: moot_session={answer.cookies['moot_session'].value}"


def commits(server: LiveServer) -> int:
    """Return a count that grows with every write to the database."""
    writer: Any = server.engine.store.log
    return writer._writer.commits


HOSTS = [
    "evil.test:{port}",
    "127.0.0.1.evil.test:{port}",
    "evil.test",
    "localhost.:{port}",
    "127.0.0.1.:{port}",
    "[::1]:{port}",
    "0.0.0.0:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "127.0.0.1:1",
    "127.0.0.1",
    "localhost",
    "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.test",
    "127.0.0.1:{port}, evil.test",
    "127.0.0.1:{port}/",
    "*",
    "",
]


async def test_an_unknown_host_name_is_rejected(server: LiveServer) -> None:
    for host in HOSTS:
        named = "host: " + host.replace("{port}", server.url.rpartition(":")[2])
        for target in ("/api/session", "/healthz", "/", "/nothing"):
            answer = await asked(server.url, request("GET", target, named, BEARER))
            assert (answer.status, answer.headers["content-type"]) == (421, "application/problem+json"), (host, target)


async def test_missing_repeated_and_foreign_hosts_are_rejected(server: LiveServer) -> None:
    port = server.url.rpartition(":")[2]
    own = f"host: 127.0.0.1:{port}"
    assert (await asked(server.url, request("GET", "/api/session", own, f"host: evil.test:{port}", BEARER))).status in (400, 421)
    assert (await asked(server.url, request("GET", "/api/session", f"host: evil.test:{port}", own, BEARER))).status in (400, 421)
    assert (await asked(server.url, request("GET", "/api/session", BEARER))).status in (400, 421)
    assert (await asked(server.url, b"GET /api/session HTTP/1.0\r\n" + BEARER.encode() + b"\r\n\r\n")).status in (400, 421)
    foreign = f"http://evil.test:{port}/api/session"
    assert (await asked(server.url, request("GET", foreign, f"host: evil.test:{port}", BEARER))).status == 421
    assert (await asked(server.url, request("CONNECT", "evil.test:443", "host: evil.test:443", BEARER))).status in (400, 405, 421)


async def test_an_absolute_target_of_another_host_is_rejected(server: LiveServer) -> None:
    own = server.url.removeprefix("http://")
    for target in (
        "http://evil.test",
        f"http://evil.test:{own.rpartition(':')[2]}",
        f"https://{own}",
        f"http://evil.test@{own}",
        "ftp://x",
    ):
        assert (await asked(server.url, request("GET", f"{target}/api/session", f"host: {own}", BEARER))).status in (400, 421), target
    for target in (f"http://{own}", f"HTTP://{own}"):
        assert (await asked(server.url, request("GET", f"{target}/api/session", f"host: {own}", BEARER))).status == 200, target


async def test_exactly_the_allowed_origins_may_read_responses(open_server: Callable[..., Any]) -> None:
    app = "https://app.example.com"
    async with open_server(listens=ServerSettings(allowed_origins=(app,))) as server:
        host = f"host: {server.url.removeprefix('http://')}"
        wanted = ("access-control-request-method: PATCH", "access-control-request-headers: authorization,content-type")
        asking = request("OPTIONS", "/api/conversations/x", host, f"origin: {app}", *wanted, "connection: close")
        preflight = await asked(server.url, asking)
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, app)
        assert preflight.headers["access-control-allow-methods"] == "PATCH"
        assert preflight.headers["access-control-allow-headers"] == "authorization,content-type"
        for target, status in (("/api/session", 200), ("/api/conversations/none", 404)):
            answer = await asked(server.url, request("GET", target, host, f"origin: {app}", BEARER))
            assert (answer.status, answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (status, app, "Origin")
            assert "access-control-allow-credentials" not in answer.headers
        for origin in ("https://app.example.com.evil.test", "http://app.example.com", "https://evil.test", "null"):
            for method in ("GET", "OPTIONS"):
                answer = await asked(server.url, request(method, "/api/session", host, f"origin: {origin}", *wanted, BEARER))
                assert not [name for name in answer.headers if name.startswith("access-control-")], origin


async def test_the_servers_own_host_names_are_accepted(server: LiveServer) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        named = f"host: {name}:{server.url.rpartition(':')[2]}"
        assert (await asked(server.url, request("GET", "/api/session", named, BEARER))).status == 200, name


FOREIGN = [
    "null",
    "http://localhost:1",
    "https://evil.test",
    "http://evil.test:{port}",
    "http://127.0.0.1@evil.test",
    "http://127.0.0.1:{port}@evil.test",
    "http://127.0.0.1:{port}.evil.test",
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port} http://evil.test",
    "ftp://127.0.0.1:{port}",
    "file://",
    "http://[::1]:{port}",
    "",
    "x",
    "http://[",
]


OPERATIONS = (("GET", "/api/session"), ("POST", "/api/tokens"), ("POST", "/api/login"), ("DELETE", "/api/tokens/x"), ("GET", "/"))


async def test_another_origin_is_rejected_with_and_without_the_cookie(server: LiveServer) -> None:
    port = server.url.rpartition(":")[2]
    cookie = await cookie_of(server)
    before = commits(server)
    for origin, more, (method, target) in product(FOREIGN, ([], [cookie], [cookie, BEARER]), OPERATIONS):
        lines = [f"host: 127.0.0.1:{port}", "origin: " + origin.replace("{port}", port), "content-type: text/plain", *more]
        answer = await asked(server.url, request(method, target, *lines, body=b'{"name": "mine"}' if method == "POST" else b""))
        assert answer.status == 403, (origin, method, target, more)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert commits(server) == before


async def test_any_origin_is_accepted_with_a_token_and_the_pages_own_with_the_cookie(server: LiveServer) -> None:
    port = server.url.rpartition(":")[2]
    host = f"host: 127.0.0.1:{port}"
    assert (await asked(server.url, request("GET", "/api/session", host, "origin: https://elsewhere.test", BEARER))).status == 200
    own = f"origin: http://127.0.0.1:{port}"
    assert (await asked(server.url, request("GET", "/api/session", host, own, await cookie_of(server)))).status == 200


async def test_a_change_with_the_cookie_requires_an_origin(server: LiveServer) -> None:
    host, cookie = f"host: {server.url.removeprefix('http://')}", await cookie_of(server)
    before = commits(server)
    for site in ([], ["sec-fetch-site: cross-site"], ["sec-fetch-site: same-site"], ["sec-fetch-site: none"]):
        answer = await asked(server.url, request("POST", "/api/tokens", host, cookie, *site, body=b'{"name": "mine"}'))
        assert answer.status == 403, site
    for mode in ("no-cors", "cors", "websocket", "navigate"):
        fetched = f"sec-fetch-site: cross-site\r\nsec-fetch-mode: {mode}\r\nsec-fetch-dest: image"
        assert (await asked(server.url, request("GET", "/api/session", host, cookie, fetched))).status == 403, mode
    assert commits(server) == before


async def test_preflights_and_upgrades_are_rejected(server: LiveServer) -> None:
    host = f"host: {server.url.removeprefix('http://')}"
    wanted = ("access-control-request-method: POST", "access-control-request-headers: authorization, x-anything")
    for origin in ("https://evil.test", "null", f"http://{server.url.removeprefix('http://')}"):
        answer = await asked(server.url, request("OPTIONS", "/api/tokens", host, f"origin: {origin}", *wanted))
        assert answer.status in (401, 403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    upgrade = ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==")
    for more in ([], ["origin: https://evil.test"], [BEARER], [await cookie_of(server)]):
        assert (await asked(server.url, request("GET", "/api/session", host, *upgrade, *more))).status != 101


SMUGGLED = {
    "length and chunks": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcd",
    "length with a sign": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ncontent-length: +4\r\n\r\nabcd",
    "length in a list": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ncontent-length: 4, 4\r\n\r\nabcd",
    "length without end": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ncontent-length: 99999999999999999999999\r\n\r\nabcd",
    "unknown coding": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks not last": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a folded header": b"GET /healthz HTTP/1.1\r\n%(host)s\r\nx-a: b\r\n folded: yes\r\n\r\n",
    "a blank before the colon": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ncontent-length : 4\r\n\r\nabcd",
    "bare line feeds": b"GET /healthz HTTP/1.1\n%(host)s\n\n",
    "a bare return": b"GET /healthz HTTP/1.1\r\n%(host)s\rx-a: b\r\n\r\n",
    "a chunk size that is none": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
    "a chunk size without end": b"POST /api/login HTTP/1.1\r\n%(host)s\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nab",
    "a header with a null": b"GET /healthz HTTP/1.1\r\n%(host)s\r\nx-a: b\0c\r\n\r\n",
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a version of its own": b"GET /healthz HTTP/9.7\r\n%(host)s\r\n\r\n",
}


async def test_an_ambiguous_request_is_rejected_and_the_connection_closed(server: LiveServer) -> None:
    host = f"host: {server.url.removeprefix('http://')}".encode()
    smuggled = b"GET /api/session HTTP/1.1\r\n" + host + b"\r\n" + BEARER.encode() + b"\r\n\r\n"
    for trick, data in SMUGGLED.items():
        async with wire(server.url) as connection:
            await connection.send(data.replace(b"%(host)s", host) + smuggled)
            answer = await connection.answer()
            assert answer.status == 400, (trick, answer)
            assert await connection.closed(), trick


CLIMBING = [
    "..%2f..%2fetc/passwd",
    "..%5c..%5cwindows",
    "%2e%2e/%2e%2e/pyproject.toml",
    "....//....//etc/passwd",
    "..;/..;/etc/passwd",
    "x%00.html",
    "%00",
    "\\\\evil.test\\share",
    "C:%5cwindows",
    "~root",
    "%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "%ff%fe",
    "%25%32%65%25%32%65/",
    "x" * 5000,
]


BELOW = ("/", "/assets/", "/docs/", "/api/blobs/", "/api/tokens/", "/api/conversations/", "/api/conversations/x/", "/api/projects/")


async def test_path_traversal_is_rejected(server: LiveServer) -> None:
    host = f"host: {server.url.removeprefix('http://')}"
    page = (await asked(server.url, request("GET", "/", host))).body
    for below, path in product(BELOW, CLIMBING):
        answer = await asked(server.url, request("GET", below + path, host, BEARER))
        assert answer.status in (400, 404, 405, 414, 422, 431) or (not below.startswith("/api") and answer.body == page), (
            below,
            path,
            answer,
        )
        assert b"root:" not in answer.body and b"[project]" not in answer.body
        assert "location" not in answer.headers


async def test_a_missing_asset_is_not_answered_with_the_page(server: LiveServer) -> None:
    for path in ("/assets/", "/assets/nothing", "/assets/x/y", "/frames/nothing", "/assets/index-0.js", "/nothing.html"):
        async with server.client.get(path) as answer:
            assert (answer.status, answer.content_type) == (404, "application/problem+json"), path


async def test_every_response_forbids_caching_framing_and_sniffing(server: LiveServer) -> None:
    host = f"host: {server.url.removeprefix('http://')}"
    wanted = [
        request("GET", "/api/session", host, BEARER),
        request("GET", "/api/session", host),
        request("GET", "/healthz", host),
        request("GET", "/", host),
        request("GET", "/nothing/there", host, BEARER),
        request("POST", "/api/login", host, "content-type: application/json", body=b"{"),
        request("PUT", "/api/session", host, BEARER),
        request("GET", "/api/session", "host: evil.test"),
        request("GET", "/api/session", host, "origin: https://evil.test"),
    ]
    for data in wanted:
        answer = await asked(server.url, data)
        said = answer.headers
        assert said["x-content-type-options"] == "nosniff", data
        assert said["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in said["content-security-policy"] and said["x-frame-options"] == "DENY"
        assert "default-src 'none'" in said["content-security-policy"] or "default-src 'self'" in said["content-security-policy"]
        assert said["cache-control"] in ("no-store", "no-cache")
        assert "server" not in said and "x-powered-by" not in said
