"""The address a server listens on, and the hosts and origins it answers to."""

from __future__ import annotations

import errno
import resource
import socket
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from moot.config.settings import ServerSettings
from moot.errors import UsageError
from moot.server.problems import Problem

BACKLOG = 512

FILES = 65_536
"""Open files that a server asks for: every stream is one."""

SHORTEST = 24
"""Characters of a MOOT_TOKEN that other machines may try."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one. Raises UsageError when the address can't be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise UsageError(f"there is no address {host!r}", fix="give --host an address of this machine") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # `::` means both kinds, as everywhere
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _unusable(host, port, error) from error
    return listening


def url_of(host: str, port: int) -> str:
    """Where a browser of this machine reaches what listens there."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def is_local(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_remote(host: str, *, allowed: bool, fixed: str, tokens: int) -> None:
    """Raises UsageError for an address that others reach, unless that is wanted and somebody could get in by a proper secret."""
    if is_local(host):
        return
    if not allowed:
        raise UsageError(
            f"other machines reach {host!r}, and whoever gets in can run commands here",
            fix="leave --host out, or add --allow-remote when that is what you want; docs/server.md says what else it needs",
        )
    if fixed and len(fixed) < SHORTEST:
        raise UsageError(
            f"MOOT_TOKEN is too short for a server that others reach: {SHORTEST} characters at least", fix="openssl rand -hex 32"
        )
    if not fixed and not tokens:
        raise UsageError("a server that others reach needs a token", fix="moot tokens create NAME, or set MOOT_TOKEN")


def raise_file_limit() -> None:
    """As many open files as this process may have, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _unusable(host: str, port: int, error: OSError) -> UsageError:
    match error.errno:
        case errno.EADDRINUSE:
            return UsageError(
                f"the port {port} of {host} is taken", fix="stop what listens there, or choose another one: --port 0 takes any"
            )
        case errno.EACCES:
            return UsageError(f"the port {port} may not be listened on", fix="choose one above 1023")
        case _:
            return UsageError(f"{host}:{port} can't be listened on: {error.strerror}", fix="give --host an address of this machine")


_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OUR_OWN = ("", "none", "same-origin")
"""What `Sec-Fetch-Site` says of our own page, of an address typed in, and of programs."""

_PORTS = {"http": "80", "https": "443"}


def hosts_of(host: str, port: int, settings: ServerSettings) -> frozenset[str]:
    """What a Host may say when that address is listened on."""
    names = {"localhost", "127.0.0.1"} if host in ("127.0.0.1", "localhost", "0.0.0.0", "::") else set[str]()
    names |= {"localhost", "[::1]"} if host in ("::1", "::") else set[str]()
    if host not in ("0.0.0.0", "::"):
        names.add(f"[{host}]" if ":" in host else host)
    own = {f"{name}:{port}" for name in names} | (names if port == 80 else set[str]())
    return frozenset(name.lower() for name in (*own, *settings.allowed_hosts))


def refusal(scope: Scope, hosts: Collection[str], settings: ServerSettings) -> Problem | None:
    """Why a request is not let in; None when it is."""
    headers = Headers(scope=scope)
    return _host_refusal(headers, hosts) or _origin_refusal(scope, headers, settings)


def _host_refusal(headers: Headers, hosts: Collection[str]) -> Problem | None:
    named = headers.getlist("host")
    if len(named) == 1 and named[0].lower() in hosts:
        return None
    said = repr(named[0]) if len(named) == 1 else "no host" if not named else "several hosts"
    return Problem(421, f"this server does not answer to {said}", fix="add it to server.allowed_hosts, as it stands in the address bar")


def _origin_refusal(scope: Scope, headers: Headers, settings: ServerSettings) -> Problem | None:
    origins = headers.getlist("origin")
    if "authorization" in headers and "cookie" not in headers:
        return None  # no browser sends this by itself, and no page of another origin may add it
    if origins:
        if len(origins) == 1 and (_is_own(origins[0], headers["host"]) or origins[0] in settings.allowed_origins):
            return None
        return _foreign(f"pages of {origins[0]!r} may not call this server")
    site = headers.get("sec-fetch-site", "")
    if site not in _OUR_OWN and not _is_visit(scope, headers):
        return _foreign("pages of other origins may not call this server")
    if "cookie" in headers and scope["method"] not in _SAFE and site != "same-origin":
        return _foreign("a browser's request that changes something has to say where it comes from")
    return None


def _is_own(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _PORTS or origin != f"{parts.scheme}://{parts.netloc}":
        return False
    # a proxy in front may speak https where we speak http: the scheme is not compared, the rest to the letter
    return parts.netloc.lower() == host.lower()


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether somebody follows a link to the page: that alone does nothing, and the page's own requests are checked."""
    path = scope["path"]
    looks = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return looks and not path.startswith(("/api/", "/v1/"))


def _foreign(detail: str) -> Problem:
    return Problem(403, detail, code="foreign_origin", fix="open the server's own page, or add the origin to server.allowed_origins")
