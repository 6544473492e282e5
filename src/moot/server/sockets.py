"""The address that a server listens on, and who may reach it there."""

from __future__ import annotations

import errno
import resource
import socket
from ipaddress import ip_address

from moot.errors import UsageError

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
