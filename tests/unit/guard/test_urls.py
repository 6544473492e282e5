import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_network

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from moot.errors import Refused
from moot.guard import urls
from moot.guard.urls import Policy, fetch

pytestmark = pytest.mark.anyio

Handler = Callable[[str, asyncio.StreamWriter], Awaitable[None]]
OPEN = Policy(allow=(ip_network("127.0.0.1/32"),), anywhere=False)


class Names(AbstractResolver):
    """Answer from a list for each name, one after the other; the last one is repeated."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise OSError(f"no such name {host}")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [urls._result(host, address, port) for address in addresses]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[tuple[int, list[str]]]:
    """A real server on 127.0.0.1; its port, and the requests it received."""
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            requests.append(request)
            await handler(request, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1], requests


def answer(body: bytes = b"hello", status: str = "200 OK", **headers: str) -> Handler:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = {"Content-Length": str(len(body)), "Content-Type": "text/plain", **given}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)
        await writer.drain()

    return handler


def opened(port: int, **more: object) -> Policy:
    return replace(OPEN, ports=urls.PORTS | {port}, **more)  # type: ignore[arg-type]


async def test_a_page_is_fetched_from_the_checked_address():
    async with server(answer(Content_Type="text/html; charset=latin-1")) as (port, requests):
        names = Names(a_example=[["127.0.0.1"]])
        page = await fetch(f"http://a.example:{port}/x?y=1#z", policy=opened(port), resolver=names)
    assert (page.status, page.body, page.media_type, page.charset, page.cut) == (200, b"hello", "text/html", "latin-1", False)
    assert requests[0].startswith("GET /x?y=1 HTTP/1.1")
    assert f"Host: a.example:{port}" in requests[0]
    assert names.asked == ["a.example"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://①②⑦.0.0.1/",
        "http://127。0。0。1/",
        "http://0.0.0.0/",
        "http://0/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1%25lo]/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://224.0.0.1/",
        "http://192.0.0.8/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://private.example/",
        "http://mixed.example/",
        "http://mapped.example/",
        "http://аpple.example/",
    ],
)
async def test_private_addresses_are_never_connected_to(url: str):
    names = Names(
        localhost=[["127.0.0.1", "::1"]],
        private_example=[["10.1.2.3"]],
        mixed_example=[["93.184.216.34", "127.0.0.1"]],
        mapped_example=[["::ffff:7f00:1"]],
    )
    names.names["xn--pple-43d.example"] = [["127.0.0.1"]]
    with pytest.raises(Refused, match="public network"):
        await fetch(url, resolver=names)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file:///etc/passwd", "Only http and https"),
        ("gopher://a.example/", "Only http and https"),
        ("data:text/plain,x", "Only http and https"),
        ("ftp://a.example/", "Only http and https"),
        ("ftp://a.example:80/", "Only http and https"),
        ("javascript:alert(1)", "Only http and https"),
        ("//a.example/", "Only http and https"),
        ("a.example", "Only http and https"),
        ("", "Only http and https"),
        ("http://", "has no host"),
        ("http:///x", "has no host"),
        ("http://a.example:22/", "Port 22 is not allowed"),
        ("http://a.example:6379/", "Port 6379 is not allowed"),
        ("http://a.example:0/", "Port 0 is not allowed"),
        ("http://a.example:80:80/", "not a valid URL"),
        ("http://a.example\\@b.example/", "not a valid URL"),
        ("http://[::1", "not a valid URL"),
    ],
)
async def test_private_urls_are_rejected_before_anything_is_sent(url: str, why: str):
    names = Names(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
    with pytest.raises(Refused, match=why):
        await fetch(url, policy=OPEN, resolver=names)
    assert names.asked == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://nul\0.example/", "no such name"),
        ("http://nowhere.example/", "no such name"),
        ("http://empty.example/", "has no address"),
    ],
)
async def test_a_host_without_an_address_is_refused(url: str, why: str):
    with pytest.raises(Refused, match=why):
        await fetch(url, policy=OPEN, resolver=Names(empty_example=[[]]))


@pytest.mark.parametrize("spelled", ["127.1", "0x7f.1", "2130706433"])
async def test_an_address_is_requested_in_its_ordinary_form(spelled: str):
    async with server(answer()) as (port, requests):
        assert (await fetch(f"http://{spelled}:{port}/", policy=opened(port), resolver=Names())).body == b"hello"
    assert f"Host: 127.0.0.1:{port}" in requests[0]


@pytest.mark.parametrize("url", ["http://user@a.example/", "http://user:hunter2@a.example/", "http://:hunter2@a.example/"])
async def test_credentials_in_a_url_are_refused_and_not_repeated(url: str):
    with pytest.raises(Refused, match="with a user name or password") as caught:
        await fetch(url, policy=OPEN, resolver=Names(a_example=[["127.0.0.1"]]))
    assert "hunter2" not in caught.value.message


async def test_a_name_is_resolved_once_and_only_the_checked_address_is_used():
    async with server(answer()) as (port, requests):
        names = Names(turning_example=[["127.0.0.1"], ["127.0.0.2"]])
        assert (await fetch(f"http://turning.example:{port}/", policy=opened(port), resolver=names)).body == b"hello"
        assert names.asked == ["turning.example"]
        with pytest.raises(Refused, match="public network"):
            await fetch(f"http://turning.example:{port}/", policy=opened(port), resolver=names)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://127.0.0.2:{port}/", "public network"),
        ("http://private.example:{port}/", "public network"),
        ("http://169.254.169.254/", "public network"),
        ("//10.0.0.1/", "public network"),
        ("file:///etc/passwd", "Only http and https"),
        ("http://a.example:22/", "Port 22 is not allowed"),
        ("http://u:p@a.example/", "with a user name or password"),
    ],
)
async def test_a_redirect_is_checked_like_a_first_address(target: str, why: str):
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        await answer(b"", "302 Found", Location=target.format(port=port))(request, writer)

    async with server(handler) as (port, requests):
        names = Names(a_example=[["127.0.0.1"]], private_example=[["10.0.0.1"]])
        with pytest.raises(Refused, match=why):
            await fetch(f"http://a.example:{port}/", policy=opened(port), resolver=names)
    assert len(requests) == 1


async def test_redirects_are_followed_up_to_a_limit():
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        left = int(request.split()[1].strip("/"))
        await (answer() if not left else answer(b"", "307 Temporary", Location=f"/{left - 1}"))(request, writer)

    async with server(handler) as (port, requests):
        names = Names(a_example=[["127.0.0.1"]])
        assert (await fetch(f"http://a.example:{port}/5", policy=opened(port), resolver=names)).url.endswith("/0")
        requests.clear()
        with pytest.raises(Refused, match="more than 5 redirects"):
            await fetch(f"http://a.example:{port}/20", policy=opened(port), resolver=names)
        assert len(requests) == 6


async def test_credentials_stay_with_their_host():
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        here = (
            answer(b"", "302 Found", Location="/same")
            if "GET /1" in request
            else answer(b"", "302 Found", Location=f"http://b.example:{port}/3")
        )
        await (answer() if "GET /3" in request else here)(request, writer)

    async with server(handler) as (port, requests):
        names = Names(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
        headers = {"Authorization": "Bearer canary", "X-Api-Key": "canary", "Cookie": "canary", "X-Other": "kept"}
        await fetch(f"http://a.example:{port}/1", headers=headers, policy=opened(port), resolver=names)
    assert ["canary" in request for request in requests] == [True, True, False]
    assert "X-Other: kept" in requests[2]


async def test_redirects_from_https_to_http_are_rejected():
    hop = urls._Hop(urls._parse("https://a.example/", Policy()), {})
    with pytest.raises(Refused, match="which is not encrypted"):
        urls._next(hop, "http://a.example/", Policy())


async def test_an_endless_body_is_truncated():
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with server(handler) as (port, _):
        page = await fetch(f"http://127.0.0.1:{port}/", policy=opened(port, bytes=300_000))
    assert (len(page.body), page.cut) == (300_000, True)


async def test_a_slow_body_ends_in_time():
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with server(handler) as (port, _):
        with pytest.raises(Refused, match=r"longer than 0\.3 seconds"):
            await fetch(f"http://127.0.0.1:{port}/", policy=opened(port, seconds=0.3))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_decompression_bomb_is_rejected_and_an_ordinary_page_decoded(encoding: str):
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    text = b"".join(b"%d\n" % number for number in range(30_000))
    async with server(answer(pack(text), Content_Encoding=encoding)) as (port, _):
        assert (await fetch(f"http://127.0.0.1:{port}/", policy=opened(port))).body == text
    async with server(answer(pack(b"\0" * 50_000_000), Content_Encoding=encoding)) as (port, _):
        with pytest.raises(Refused, match="decompresses to more than 100 times"):
            await fetch(f"http://127.0.0.1:{port}/", policy=opened(port))


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nno gzip!!",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
        b"not http at all\r\n\r\n",
        b"",
    ],
)
async def test_a_broken_answer_is_refused(raw: bytes):
    async def handler(request: str, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    async with server(handler) as (port, _):
        with pytest.raises(Refused):
            await fetch(f"http://127.0.0.1:{port}/", policy=opened(port, seconds=5))


async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch):
    async with server(answer(b"proxy")) as (proxy, proxied), server(answer()) as (port, _):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        assert (await fetch(f"http://127.0.0.1:{port}/", policy=opened(port))).body == b"hello"
    assert not proxied


async def test_an_address_of_the_configuration_may_be_anywhere_but_not_redirect():
    async with server(answer()) as (port, requests):
        await fetch(f"http://127.0.0.1:{port}/", body=b"{}", policy=Policy(anywhere=True))
        assert requests[0].startswith("POST /")
    async with server(answer(b"", "302 Found", Location="/x")) as (port, requests):
        with pytest.raises(Refused, match="not followed"):
            await fetch(f"http://127.0.0.1:{port}/", policy=Policy(anywhere=True))
    assert len(requests) == 1
