"""The address a server listens on, and the hosts and origins it answers to."""

from __future__ import annotations

import errno
import resource
import socket
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from moot.config.settings import ServerSettings
from moot.errors import UsageError
from moot.server.problems import Problem

BACKLOG = 512

FILES = 65_536
"""Number of open files a server requests; every stream needs one."""

SHORTEST = 24
"""Minimum length of a MOOT_TOKEN for a remotely accessible server."""


def bind(host: str, port: int, *, shared: bool = False, listens: bool = True) -> socket.socket:
    """Return a socket that listens on the address; port 0 selects any free port. Raise UsageError if the address is unavailable.

    If `shared`, other processes of this user can bind the address as well, and the kernel distributes connections among those that listen.
    If `listens` is False, the socket only reserves the address.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise UsageError(f"Address {host!r} not found.", fix="Use an address of this machine as --host.") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # `::` listens on IPv4 and IPv6
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        if shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(address)
        if listens:
            listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        reason, fix = f"Can't listen on {host}:{port}: {error.strerror}.", "Use an address of this machine as --host."
        if error.errno == errno.EADDRINUSE:
            reason = f"Port {port} on {host} is already in use."
            fix = "Stop the other program, or choose another port: --port 0 selects a free one."
        elif error.errno == errno.EACCES:
            reason, fix = f"Permission denied for port {port}.", "Choose a port above 1023."
        raise UsageError(reason, fix=fix) from error
    return listening


def url_of(host: str, port: int) -> str:
    """Return the URL for a browser on this machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def is_local(host: str) -> bool:
    """Return True if the address is only reachable from this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_remote(host: str, *, allowed: bool, fixed: str, tokens: int) -> None:
    """Raise UsageError for a remotely accessible address unless it is explicitly allowed and protected by a sufficient secret."""
    if is_local(host):
        return
    if not allowed:
        raise UsageError(
            f"{host!r} is reachable from other machines, and authenticated clients can run commands here.",
            fix="Omit --host, or allow remote access with --allow-remote; see docs/server.md.",
        )
    if fixed and len(fixed) < SHORTEST:
        raise UsageError(
            f"MOOT_TOKEN must have at least {SHORTEST} characters for a remotely accessible server.",
            fix="Generate a token with: openssl rand -hex 32",
        )
    if not fixed and not tokens:
        raise UsageError("A remotely accessible server needs a token.", fix="Run moot tokens create NAME, or set MOOT_TOKEN.")


def raise_file_limit() -> None:
    """Raise the limit on open files as far as allowed, up to FILES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


SLASH = "\ud800"
"""Replacement of an encoded slash (`%2F`) in a path, so that routes don't take it for a separator. Decoded paths never contain it."""


def keep_slashes(scope: Scope) -> Scope:
    """Return the scope with SLASH in place of encoded slashes in its path."""
    raw: bytes = scope.get("raw_path", b"")
    if b"%2f" not in raw.lower():
        return scope
    return {**scope, "path": "/".join(unquote(segment).replace("/", SLASH) for segment in raw.decode("latin-1").split("/"))}


def with_slashes(value: str) -> str:
    """Return a path parameter with SLASH replaced by a slash."""
    return value.replace(SLASH, "/")


_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OUR_OWN = ("", "none", "same-origin")
"""Accepted `Sec-Fetch-Site` values: missing (programs), `none` (typed addresses) and `same-origin` (our own page)."""

_PORTS = {"http": "80", "https": "443"}


def hosts_of(host: str, port: int, settings: ServerSettings) -> frozenset[str]:
    """Return the accepted Host headers for a listening address."""
    names = {"localhost", "127.0.0.1"} if host in ("127.0.0.1", "localhost", "0.0.0.0", "::") else set[str]()
    names |= {"localhost", "[::1]"} if host in ("::1", "::") else set[str]()
    if host not in ("0.0.0.0", "::"):
        names.add(f"[{host}]" if ":" in host else host)
    own = {f"{name}:{port}" for name in names} | (names if port == 80 else set[str]())
    return frozenset(name.lower() for name in (*own, *settings.allowed_hosts))


def refusal(scope: Scope, hosts: Collection[str], settings: ServerSettings) -> Problem | None:
    """Return the error for a request with a wrong host or origin, or None if both are allowed."""
    headers = Headers(scope=scope)
    named = headers.getlist("host")
    if len(named) != 1:
        return Problem(421, "The request must have exactly one Host header.")
    if named[0].lower() not in hosts:
        fix = "Add it to the setting server.allowed_hosts, with the port if the address bar shows one."
        return Problem(421, f"This server does not accept the host {named[0]!r}.", fix=fix)
    return _origin_refusal(scope, headers, settings)


def cors_headers(scope: Scope, settings: ServerSettings) -> dict[str, str]:
    """Return the headers that let a page from an allowed origin read the response. Such pages must send a token."""
    headers = Headers(scope=scope)
    origin = headers.get("origin", "")
    if not settings.allowed_origins:
        return {}
    if origin not in settings.allowed_origins:
        return {"vary": "Origin"}
    allowed = {"access-control-allow-origin": origin, "vary": "Origin", "cross-origin-resource-policy": "cross-origin"}
    if not is_preflight(scope):
        return {**allowed, "access-control-expose-headers": "*"}
    wanted = {name: headers.get(f"access-control-request-{name}", "") for name in ("method", "headers")}
    return {
        **allowed,
        "access-control-allow-methods": wanted["method"],
        "access-control-allow-headers": wanted["headers"],
        "access-control-max-age": "600",
    }


def is_preflight(scope: Scope) -> bool:
    """Return True if a browser is asking whether a page from another origin may send a request."""
    return scope["method"] == "OPTIONS" and "access-control-request-method" in Headers(scope=scope)


def _origin_refusal(scope: Scope, headers: Headers, settings: ServerSettings) -> Problem | None:
    origins = headers.getlist("origin")
    if "authorization" in headers and "cookie" not in headers:
        return None  # browsers don't send this automatically, and pages of other origins can't add it
    if origins:
        if len(origins) == 1 and (_is_own(origins[0], headers["host"]) or origins[0] in settings.allowed_origins):
            return None
        return _foreign(f"Pages from {origins[0]!r} may not call this server.")
    site = headers.get("sec-fetch-site", "")
    if site not in _OUR_OWN and not _is_visit(scope, headers):
        return _foreign("Cross-origin requests are not allowed.")
    if "cookie" in headers and scope["method"] not in _SAFE and site != "same-origin":
        return _foreign("Browser requests that change data need an Origin header.")
    return None


def _is_own(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _PORTS or origin != f"{parts.scheme}://{parts.netloc}":
        return False
    # a proxy may use https while we use http, so the scheme is not compared
    return parts.netloc.lower() == host.lower()


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Return True if a browser is navigating to the page. Navigation alone changes nothing; the page's requests are checked."""
    path = scope["path"]
    looks = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return looks and not path.startswith(("/api/", "/v1/"))


def _foreign(detail: str) -> Problem:
    return Problem(
        403, detail, code="foreign_origin", fix="Use the server's own page, or add the origin to the setting server.allowed_origins."
    )
