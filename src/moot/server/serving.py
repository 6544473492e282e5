"""Runs the server on a socket until it is told to stop."""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import uvicorn
from fastapi import FastAPI

from moot.errors import UsageError
from moot.server.state import Server

BACKLOG = 512

CONNECTIONS = 2_000
"""Connections and requests at a time; more are answered with 503."""

KEPT_ALIVE = 75
"""Seconds that a connection stays open without a request."""

GRACE = 5
"""Seconds that open requests have when the server stops."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one. Raises UsageError when the address can't be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise UsageError(f"there is no address {host!r}", fix="give --host an address of this machine") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _taken(host, port, error) from error
    return listening


async def serve(app: FastAPI, listening: socket.socket) -> None:
    """Answers on that socket until `stopping` of the application's Server is set; open requests have a moment to end."""
    server: Server = app.state.server
    listener = _Listener(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=KEPT_ALIVE,
            timeout_graceful_shutdown=GRACE,
            backlog=BACKLOG,
        )
    )
    async with anyio.create_task_group() as group:
        group.start_soon(server.tokens.watch)
        group.start_soon(_stop, server, listener)
        try:
            await listener.serve([listening])
        finally:
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await server.tokens.note()


class _Listener(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _stop(server: Server, listener: uvicorn.Server) -> None:
    await server.stopping.wait()
    listener.should_exit = True


def _taken(host: str, port: int, error: OSError) -> UsageError:
    match error.errno:
        case errno.EADDRINUSE:
            return UsageError(
                f"the port {port} of {host} is taken", fix="stop what listens there, or choose another one: --port 0 takes any"
            )
        case errno.EACCES:
            return UsageError(f"the port {port} may not be listened on", fix="choose one above 1023")
        case _:
            return UsageError(f"{host}:{port} can't be listened on: {error.strerror}", fix="give --host an address of this machine")
