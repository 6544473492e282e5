"""Run the server until it is stopped, with limits on request heads."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn, cast

import anyio
import anyio.to_thread
import orjson
import uvicorn
from fastapi import FastAPI
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from moot.config.loading import Loader
from moot.engine import Engine, open_engine
from moot.engine.locks import ServerInfo, claim_home
from moot.engine.opening import warm
from moot.errors import MootError
from moot.server.app import create_app
from moot.server.credentials import Credentials
from moot.server.hosts import BACKLOG, bind, check_remote, hosts_of, raise_file_limit, url_of
from moot.server.imports import clear_uploads
from moot.server.pages import is_built
from moot.server.state import Configuration, Limits, Server
from moot.types.token import LOCAL_USER

HEAD = 64 * 1024
"""Bytes that the line and the headers of a request may have."""

LINES = 128
"""Headers of a request."""


class Connection(HttpToolsProtocol):
    """Says 431 to a head without end and 408 to one that does not come: before it is whole nobody knows who is asking."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        server: Server = cast("FastAPI", config.app).state.server
        self._seconds = server.limits.head
        self._size = 0
        """Bytes that were read since the last of a body, or since a head was whole."""
        self._head = False
        """The head of a request is whole, its body is still to come."""
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._timer is None and not self._head:
            self._wait()
        self._size += len(data)
        super().data_received(data)
        if self._size > HEAD and not self._refused:
            self._refuse(431, "the head of the request is too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = False

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > LINES:  # what stands behind the chunks of a body comes here too
            self._stop()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._size = 0

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEAD:
            self._stop()
        self._head = True
        self._size = 0
        self._done_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = False
        self._size = 0

    def send_400_response(self, msg: str) -> None:
        """What is said to bytes that are no HTTP; what else was refused has been told already."""
        if not self._refused:
            self._refuse(400, "this is no HTTP that could be read")

    def _stop(self) -> NoReturn:
        self._refuse(431, "the head of the request is too large")
        raise ValueError("refused")  # ends the parser's work on what was read

    def _refuse(self, status: int, detail: str) -> None:
        self._refused = True
        self._done_waiting()
        code = {400: "bad_request", 408: "timeout", 431: "headers_too_large"}[status]
        phrase = HTTPStatus(status).phrase
        body = orjson.dumps(
            {"type": f"urn:moot:problem:{code}", "title": phrase, "status": status, "detail": detail, "code": code, "fix": ""}
        )
        head = (
            f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
            "x-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        cycle = self._cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(head.encode() + body)
        self.transport.close()

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        return cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request

    def _wait(self) -> None:
        if (cycle := self._cycle) is None or cycle.response_complete:
            self._timer = self.loop.call_later(self._seconds, self._waited)

    def _waited(self) -> None:
        self._timer = None
        if self._size:
            self._refuse(408, f"the head of the request did not come within {self._seconds:g} seconds")
        else:
            self.transport.close()

    def _done_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


CONNECTIONS = 10_000
"""Connections at a time; more are answered with 503."""

KEPT_ALIVE = 75
"""Seconds that a connection stays open without a request."""

GRACE = 5
"""Seconds that open requests have when the server stops."""

SWEEP = 5.0
"""Seconds between two looks for runs whose process has died."""

log = logging.getLogger("moot.server")


async def run(
    loader: Loader,
    *,
    fixed: str,
    remote: bool,
    ready: Callable[[ServerInfo], Awaitable[None]],
    hide: Callable[[Sequence[str]], None],
) -> int:
    """Serves the home of that configuration until a signal; how many runs are left to go on with the next server.

    `fixed` is the secret that MOOT_TOKEN holds; `ready` is awaited once requests are answered. Raises UsageError for an address that
    can't be had or may not be listened on, Busy when the home is served already.
    """
    settings = loader.current.settings
    raise_file_limit()
    with claim_home(settings.home) as told:
        await anyio.to_thread.run_sync(clear_uploads, settings.home)
        async with open_engine(settings, resume=True) as engine:
            listens = settings.server
            check_remote(listens.host, allowed=remote, fixed=fixed, tokens=len(await engine.store.tokens.list()))
            listening = bind(listens.host, listens.port)
            port = int(listening.getsockname()[1])
            server = Server(
                engine=engine,
                tokens=Credentials(engine.store, fixed=fixed),
                configuration=Configuration(engine, loader, hide),
                settings=listens,
                hosts=hosts_of(listens.host, port, listens),
                limits=Limits(body=listens.max_body),
            )
            code = partial(server.tokens.code, LOCAL_USER)
            place = ServerInfo(url_of(listens.host, port), os.getpid(), is_built(), settings.imports.watch, code)
            server.following.told = lambda follows: told(replace(place, follows=follows))
            await warm(engine)
            async with anyio.create_task_group() as group:
                group.start_soon(_heed_signals, server, group.cancel_scope)
                await serve(create_app(server), listening, ready=partial(_tell, told, ready, place))
                group.cancel_scope.cancel()
            return len(await engine.store.records.runs(statuses=frozenset({"running", "queued"})))


async def serve(app: FastAPI, listening: socket.socket, *, ready: Callable[[], Awaitable[None]] | None = None) -> None:
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
            http=Connection,
            timeout_keep_alive=KEPT_ALIVE,
            timeout_graceful_shutdown=GRACE,
            backlog=BACKLOG,
        ),
        ready,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(partial(server.tokens.watch, revoked=server.streams.look))
        group.start_soon(server.configuration.watch)
        group.start_soon(server.imports.work)
        group.start_soon(server.following.work)
        group.start_soon(_take_up, server.engine)
        group.start_soon(_stop, server, listener)
        try:
            await listener.serve([listening])
        finally:
            listening.close()
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await server.tokens.note()


class _Listener(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Awaitable[None]] | None) -> None:
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready is not None:
            await self._ready()


async def _tell(told: Callable[[ServerInfo], None], ready: Callable[[ServerInfo], Awaitable[None]], place: ServerInfo) -> None:
    told(place)
    await ready(place)


async def _stop(server: Server, listener: uvicorn.Server) -> None:
    await server.stopping.wait()
    server.streams.look()
    listener.should_exit = True


async def _heed_signals(server: Server, scope: anyio.CancelScope) -> None:
    """The first signal lets open requests end; the second does not."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for _ in signals:
            if server.stopping.is_set():
                scope.cancel()
                return
            server.stopping.set()


async def _take_up(engine: Engine) -> None:
    """Goes on with runs whose process has died meanwhile, where they may go on by themselves."""
    while True:
        await anyio.sleep(SWEEP)
        try:
            await engine.runs.sweep(resume=True)
        except MootError as error:  # it is tried again at the next look
            log.error("runs of dead processes can't be taken up: %s", error)
