"""The one way to fetch what a model, a page or a file names: only from the public network, checked again at every hop.

A name is resolved once, every address of the answer is checked, and the connection goes to exactly those. Proxies of the environment,
cookies and `.netrc` play no part: they would change where the checked request goes.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from moot.errors import Refused
from moot.guard.addresses import Address, Network, literal, refusal

__all__ = ["Page", "Policy", "SystemResolver", "fetch"]

PORTS = frozenset({80, 443, 8080, 8443})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "x-subscription-token"})
_ENCODINGS = "gzip, deflate"
_FREE_BYTES = 100_000
"""Below this no ratio is too high: short pages of blanks compress well."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How far a fetch may go."""

    bytes: int = 5_000_000
    """Of the decoded body; what comes after is left."""
    ratio: int = 100
    """How many times the bytes on the wire a body may unfold to."""
    seconds: float = 30.0
    """For all hops together."""
    hops: int = 5
    ports: frozenset[int] = PORTS
    allow: tuple[Network, ...] = ()
    """Networks that a person opened by configuration, although they are not public."""
    anywhere: bool = False
    """For an address that a person wrote into the configuration: any address and port, but no redirect."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a URL held."""

    url: str
    """Where the last hop led."""
    status: int
    media_type: str
    charset: str
    body: bytes
    cut: bool = False
    """Whether there was more."""


@dataclass(frozen=True, slots=True)
class _Hop:
    url: URL
    headers: Mapping[str, str]


class SystemResolver(AbstractResolver):
    """Asks the system, off the loop."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        return [_result(host, str(entry[4][0]), port) for entry in found]

    async def close(self) -> None:
        """Nothing is held."""


class _Pinned(AbstractResolver):
    """Knows one name and the addresses that were checked for it."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        return [_result(host, str(address), port) for address in self._addresses]

    async def close(self) -> None:
        """Nothing is held."""


async def fetch(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    policy: Policy | None = None,
    resolver: AbstractResolver | None = None,
) -> Page:
    """What the URL holds, whatever the status; a POST when there is a body.

    Raises Refused for what may not be reached, and for what can't be: no such name, no answer in time, broken transfer.
    """
    limits = policy or Policy()
    try:
        async with asyncio.timeout(limits.seconds):
            return await _follow(_Hop(_parse(url, limits), headers or {}), body, limits, resolver or SystemResolver())
    except TimeoutError as error:
        raise Refused(f"{url!r} took longer than {limits.seconds:g} seconds") from error
    except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
        raise Refused(f"{url!r} can't be fetched: {error}") from error


async def _follow(hop: _Hop, body: bytes | None, policy: Policy, resolver: AbstractResolver) -> Page:
    for _ in range(policy.hops + 1):
        answer = await _request(hop, body, policy, resolver)
        if isinstance(answer, Page):
            return answer
        hop = _next(hop, answer, policy)
    raise Refused(f"{str(hop.url)!r} is the end of more than {policy.hops} redirects")


async def _request(hop: _Hop, body: bytes | None, policy: Policy, resolver: AbstractResolver) -> Page | str:
    """The page, or where a redirect leads."""
    url, addresses = await _checked(hop.url, policy, resolver)
    connector = aiohttp.TCPConnector(resolver=_Pinned(addresses), use_dns_cache=False, force_close=True, limit=1)
    headers = {"Accept-Encoding": _ENCODINGS, "User-Agent": "moot", **hop.headers}
    async with (
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False) as session,
        session.request("GET" if body is None else "POST", url, headers=headers, data=body, allow_redirects=False) as response,
    ):
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location is not None:
            return location
        data, cut = await _read(response, policy)
        charset = response.charset or ""
        return Page(str(hop.url), response.status, response.content_type, charset, data, cut)


def _next(hop: _Hop, location: str, policy: Policy) -> _Hop:
    if policy.anywhere:
        raise Refused(f"{str(hop.url)!r} redirects to {location!r}, which is not followed", fix="configure the final address")
    url = _parse(str(hop.url.join(URL(location))), policy)
    if hop.url.scheme == "https" and url.scheme != "https":
        raise Refused(f"{str(hop.url)!r} redirects to {str(url)!r}, out of encryption")
    headers = hop.headers
    if url.origin() != hop.url.origin():
        headers = {name: value for name, value in headers.items() if name.lower() not in _PRIVATE_HEADERS}
    return _Hop(url, headers)


def _parse(url: str, policy: Policy) -> URL:
    try:
        parsed = URL(url.strip())
        port = parsed.port
    except ValueError as error:
        raise Refused(f"{url!r} is no URL: {error}") from error
    if parsed.scheme not in ("http", "https"):
        raise Refused(f"{url!r}: only http and https can be fetched, not {parsed.scheme or 'nothing'!r}")
    if not parsed.host:
        raise Refused(f"{url!r} names no host")
    if parsed.user is not None or parsed.password is not None:
        raise Refused(f"a URL with a user name or password in it is not fetched ({parsed.host!r})")
    if port not in policy.ports and not policy.anywhere:
        known = ", ".join(str(number) for number in sorted(policy.ports))
        raise Refused(f"{url!r}: port {port} is not one of {known}")
    return parsed.with_fragment(None)


async def _checked(url: URL, policy: Policy, resolver: AbstractResolver) -> tuple[URL, tuple[Address, ...]]:
    """The URL as it is sent, and the only addresses it may be sent to. Raises Refused when any of the answer is not allowed."""
    host = (url.raw_host or "").rstrip(".")
    spelled = literal(url.host or "") or literal(host)
    if spelled is not None:
        addresses: tuple[Address, ...] = (spelled,)
        # one spelling, so that nobody further on reads `127.1` in another way
        url = url.with_host(str(spelled))
    else:
        answer = await resolver.resolve(host, url.port or 0, socket.AF_UNSPEC)
        addresses = tuple(address for entry in answer if (address := literal(entry["host"])) is not None)
    if not addresses:
        raise Refused(f"{str(url)!r}: the name {host!r} has no address")
    if not policy.anywhere:
        for address in addresses:
            if why := refusal(address, policy.allow):
                raise Refused(f"{str(url)!r} is not on the public network: {why}", fix="open it in tools.fetch_url.allow")
    return url, addresses


async def _read(response: aiohttp.ClientResponse, policy: Policy) -> tuple[bytes, bool]:
    """The decoded body up to the limit, and whether there was more."""
    unfold = _unfolder(response.headers.get("Content-Encoding", ""))
    body, wire = bytearray(), 0
    async for piece in response.content.iter_any():
        wire += len(piece)
        while piece:
            room = policy.bytes + 1 - len(body)
            if unfold is None:
                body += piece[:room]
                piece = b""
            else:
                body += unfold.decompress(piece, room)
                piece = b"" if unfold.eof else unfold.unconsumed_tail
            if len(body) > max(wire * policy.ratio, _FREE_BYTES):
                raise Refused(f"{str(response.url)!r} unfolds to more than {policy.ratio} times what was sent")
            if len(body) > policy.bytes:
                return bytes(body[: policy.bytes]), True
    return bytes(body), False


class _Unfold(Protocol):
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


def _unfolder(encoding: str) -> _Unfold | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(wbits=31)
        case "deflate":
            return zlib.decompressobj()
        case other:
            raise Refused(f"the answer is encoded as {other!r}, which was not asked for")


def _result(hostname: str, host: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return ResolveResult(hostname=hostname, host=host, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
