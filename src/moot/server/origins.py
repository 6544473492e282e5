"""Which hosts and pages a server answers to: an exact list, so that neither a rebound name nor a foreign page gets in."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from moot.config.settings import ServerSettings
from moot.server.problems import Problem

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
