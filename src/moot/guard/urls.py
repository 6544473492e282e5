"""Fetching of URLs that a model, a page or a file names. Only public addresses are allowed, and every redirect is checked.

A host name is resolved once, all its addresses are checked, and moot connects only to them. Proxy variables, cookies and `.netrc` are
ignored, because they would change where the request goes. Addresses are classified with an explicit table, because
`ipaddress.is_global` accepts a NAT64 form of 127.0.0.1. The blocks are from the IANA special-purpose registries
(https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-).
"""

from __future__ import annotations

import asyncio
import re
import socket
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from moot.errors import Refused

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_BLOCKS: dict[str, str] = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "a private network",
    "100.64.0.0/10": "a provider's internal network",
    "127.0.0.0/8": "this machine",
    "168.63.129.16/32": "an internal cloud service",
    "169.254.0.0/16": "link-local or cloud metadata",
    "172.16.0.0/12": "a private network",
    "192.0.0.0/24": "reserved for protocols",
    "192.0.2.0/24": "for documentation",
    "192.31.196.0/24": "reserved for protocols",
    "192.52.193.0/24": "reserved for protocols",
    "192.88.99.0/24": "reserved for protocols",
    "192.168.0.0/16": "a private network",
    "192.175.48.0/24": "reserved for protocols",
    "198.18.0.0/15": "for benchmarks",
    "198.51.100.0/24": "for documentation",
    "203.0.113.0/24": "for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    "2001::/23": "reserved for protocols",
    "2001:db8::/32": "for documentation",
    "2620:4f:8000::/48": "reserved for protocols",
    "3fff::/20": "for documentation",
}
_NOT_PUBLIC = [(ip_network(block), why) for block, why in _BLOCKS.items()]
_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses that are allocated to the public network. Addresses outside of it need no row in the table."""

_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)
_URL = re.compile(r"https?://[^\s'\"]*[^\s'\":,.]")
_NUMBERS = re.compile(r"[0-9a-fx]+(\.[0-9a-fx]*)*", re.IGNORECASE)


def literal_address(host: str) -> Address | None:
    """Return the address if the host is written in numbers, in any form that the system accepts (`127.1`, `0x7f.1`); None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _NUMBERS.fullmatch(host) or len(host) > 64:
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def blocked_reason(address: Address, allow: Sequence[Network] = ()) -> str:
    """Return why an address must not be accessed, or an empty string if it is public or allowed by the user."""
    for one in unwrapped(address):
        if any(one in network for network in allow if network.version == one.version):
            continue
        if why := _why(one):
            return f"{one} is {why}" if one == address else f"{address} stands for {one}, which is {why}"
    return ""


def unwrapped(address: Address) -> tuple[Address, ...]:
    """Return the addresses that packets to this one may reach: the IPv4 addresses embedded in it, or the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    return tuple(_inner(address)) or (address,)


def _inner(address: IPv6Address) -> Iterator[Address]:
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield IPv4Address(number & 0xFFFFFFFF)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFFFFFF)
        yield IPv4Address(~number & 0xFFFFFFFF)
    elif number >> 32 & 0xFFFFFFFF in _ISATAP:
        yield address
        yield IPv4Address(number & 0xFFFFFFFF)


def _why(address: Address) -> str:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return "not on the public network"
    return next((why for block, why in _NOT_PUBLIC if block.version == address.version and address in block), "")


PORTS = frozenset({80, 443, 8080, 8443})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "x-subscription-token"})
_ENCODINGS = "gzip, deflate"
_FREE_BYTES = 100_000
"""Number of decoded bytes up to which any compression ratio is allowed, because blank pages compress well."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of a fetch."""

    bytes: int = 5_000_000
    """Maximum size of the decoded body. The rest is discarded."""
    ratio: int = 100
    """Maximum ratio of decoded size to transferred size."""
    seconds: float = 30.0
    """Time limit for all redirects together."""
    hops: int = 5
    ports: frozenset[int] = PORTS
    schemes: frozenset[str] = frozenset({"http", "https"})
    allow: tuple[Network, ...] = ()
    """Private networks that the user has allowed in the configuration."""
    anywhere: bool = False
    """True to allow any address and port but no redirects, for a URL from the configuration."""


@dataclass(frozen=True, slots=True)
class Page:
    """The response to a fetch."""

    url: str
    """URL after all redirects."""
    status: int
    media_type: str
    charset: str
    body: bytes
    cut: bool = False
    """True if the body was truncated."""
    retry_after: str = ""
    """The header Retry-After: seconds or a date; empty if there is none."""


@dataclass(frozen=True, slots=True)
class _Hop:
    url: URL
    headers: Mapping[str, str]


class SystemResolver(AbstractResolver):
    """Resolver that uses the system's resolver in a thread."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        return [_result(host, str(entry[4][0]), port) for entry in found]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class _Pinned(AbstractResolver):
    """Resolver that always returns the addresses that were checked."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        return [_result(host, str(address), port) for address in self._addresses]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def fetch(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    policy: Policy | None = None,
    resolver: AbstractResolver | None = None,
) -> Page:
    """Fetch a URL and return the response, whatever its status. If there is a body, send it with a POST request.

    Raise Refused if the URL is not allowed, or can't be fetched: unknown host, timeout, interrupted transfer.
    """
    limits = policy or Policy()
    try:
        async with asyncio.timeout(limits.seconds):
            hop = _Hop(_parse(url, limits), headers or {})
            for _ in range(limits.hops + 1):
                answer = await _request(hop, body, limits, resolver or SystemResolver())
                if isinstance(answer, Page):
                    return answer
                hop = _next(hop, answer, limits)
    except TimeoutError as error:
        raise Refused(f"{url!r} took longer than {limits.seconds:g} seconds.") from error
    except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
        raise Refused(f"Could not fetch {url!r}: {error}") from error
    raise Refused(f"{str(hop.url)!r} was not fetched, because it came after more than {limits.hops} redirects.")


def check_form(url: str, policy: Policy) -> None:
    """Raise Refused if the URL is not allowed, whatever the addresses of its host are."""
    _parse(url, policy)


def without_secrets(message: str, url: str) -> str:
    """Shorten this and all other URLs in a message to their origins, because their paths and queries may contain tokens."""
    return _URL.sub(lambda match: _origin(match[0]), message.replace(repr(url), _origin(url)).replace(url, _origin(url)))


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}"
    except ValueError:
        return "the URL"


async def public_addresses(url: str, resolver: AbstractResolver | None = None) -> tuple[URL, tuple[Address, ...]]:
    """Return a URL in canonical form for another program, and the only addresses to which it may connect.

    Raise Refused if the URL is not allowed or its host can't be resolved in time.
    """
    limits = Policy()
    try:
        async with asyncio.timeout(limits.seconds):
            found, addresses = await _checked(_parse(url, limits), limits, resolver or SystemResolver())
    except TimeoutError as error:
        raise Refused(f"{url!r} took longer than {limits.seconds:g} seconds.") from error
    except (OSError, ValueError) as error:
        raise Refused(f"Could not resolve the host of {url!r}: {error}") from error
    host = found.raw_host or ""
    return found.with_host(host.rstrip(".")) if host.endswith(".") else found, addresses


async def _request(hop: _Hop, body: bytes | None, policy: Policy, resolver: AbstractResolver) -> Page | str:
    """Send one request. Return the page, or the target if it is a redirect."""

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
        return Page(str(hop.url), response.status, response.content_type, charset, data, cut, response.headers.get("Retry-After", ""))


def _next(hop: _Hop, location: str, policy: Policy) -> _Hop:
    if policy.anywhere:
        raise Refused(f"{str(hop.url)!r} redirects to {location!r}, but redirects are not followed.", fix="Configure the final URL.")
    url = _parse(str(hop.url.join(URL(location))), policy)
    if hop.url.scheme == "https" and url.scheme != "https":
        raise Refused(f"{str(hop.url)!r} redirects to {str(url)!r}, which is not encrypted.")
    headers = hop.headers
    if url.origin() != hop.url.origin():
        headers = {name: value for name, value in headers.items() if name.lower() not in _PRIVATE_HEADERS}
    return _Hop(url, headers)


def _parse(url: str, policy: Policy) -> URL:
    try:
        parsed = URL(url.strip())
        port = parsed.port
    except ValueError as error:
        raise Refused(f"{url!r} is not a valid URL: {error}") from error
    if parsed.scheme not in policy.schemes:
        raise Refused(f"{url!r}: Only {' and '.join(sorted(policy.schemes))} URLs can be fetched.")
    if not parsed.host:
        raise Refused(f"{url!r} has no host.")
    if parsed.user is not None or parsed.password is not None:
        raise Refused(f"URLs with a user name or password can't be fetched ({parsed.host!r}).")
    if port not in policy.ports and not policy.anywhere:
        known = ", ".join(str(number) for number in sorted(policy.ports))
        raise Refused(f"{url!r}: Port {port} is not allowed. Allowed ports: {known}.")
    return parsed.with_fragment(None)


async def _checked(url: URL, policy: Policy, resolver: AbstractResolver) -> tuple[URL, tuple[Address, ...]]:
    """Return the URL to request and the only addresses to connect to. Raise Refused if any address is not allowed."""
    host = (url.raw_host or "").rstrip(".")
    spelled = literal_address(url.host or "") or literal_address(host)
    if spelled is not None:
        addresses: tuple[Address, ...] = (spelled,)
        # canonical form, so that nothing interprets `127.1` differently later
        url = url.with_host(str(spelled))
    else:
        answer = await resolver.resolve(host, url.port or 0, socket.AF_UNSPEC)
        addresses = tuple(address for entry in answer if (address := literal_address(entry["host"])) is not None)
    if not addresses:
        raise Refused(f"{str(url)!r}: The host {host!r} has no address.")
    if not policy.anywhere:
        for address in addresses:
            if why := blocked_reason(address, policy.allow):
                raise Refused(f"{str(url)!r} is not on the public network: {why}.", fix="Allow it in tools.fetch_url.allow.")
    return url, addresses


async def _read(response: aiohttp.ClientResponse, policy: Policy) -> tuple[bytes, bool]:
    """Return the decoded body up to the limit, and True if it was truncated."""
    decoder = _decoder(response.headers.get("Content-Encoding", ""))
    body, wire = bytearray(), 0
    async for piece in response.content.iter_any():
        wire += len(piece)
        while piece:
            room = policy.bytes + 1 - len(body)
            if decoder is None:
                body += piece[:room]
                piece = b""
            else:
                body += decoder.decompress(piece, room)
                piece = b"" if decoder.eof else decoder.unconsumed_tail
            if len(body) > max(wire * policy.ratio, _FREE_BYTES):
                raise Refused(f"{str(response.url)!r} decompresses to more than {policy.ratio} times its size.")
            if len(body) > policy.bytes:
                return bytes(body[: policy.bytes]), True
    return bytes(body), False


class _Decoder(Protocol):
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


def _decoder(encoding: str) -> _Decoder | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(wbits=31)
        case "deflate":
            return zlib.decompressobj()
        case other:
            raise Refused(f"The response has the unsupported encoding {other!r}.")


def _result(hostname: str, host: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return ResolveResult(hostname=hostname, host=host, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
