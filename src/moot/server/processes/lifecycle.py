"""The server process: start it, limit the size and time of request heads, and shut it down."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import orjson
import uvicorn
from fastapi import FastAPI
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from moot.config.loader import Loaded, Loader
from moot.config.settings import Settings
from moot.engine import Engine, open_engine
from moot.engine.channels import serve_all as serve_channels
from moot.engine.locks import ServerInfo, claim_home
from moot.engine.startup import warm
from moot.errors import ConfigError, MootError, UsageError
from moot.features.webhooks.sender import OutgoingWebhooks
from moot.runtime.configuration import log_change
from moot.server.app import create_app
from moot.server.credentials import Credentials
from moot.server.hosts import BACKLOG, bind, check_remote, hosts_of, raise_file_limit, url_of
from moot.server.imports import clear_uploads
from moot.server.pages import is_built
from moot.server.processes.leader import ForwardedClient, Forwarding, connected
from moot.server.processes.workers import STOPS, Supervisor, Worker, private_folder, this_worker
from moot.server.state import Limits, Server
from moot.store import open_store
from moot.types.token import LOCAL_USER

HEAD = 64 * 1024
"""Maximum size of the request line and headers, in bytes."""

LINES = 128
"""Maximum number of request headers."""


class Connection(HttpToolsProtocol):
    """Reject oversized request heads with 431 and slow ones with 408, before the client is authenticated."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        server: Server = cast("FastAPI", config.app).state.server
        self._seconds = server.limits.head
        self._hosts = server.hosts
        self._size = 0
        """Number of bytes received since the last complete head or body data."""
        self._head = False
        """True while the head is complete and the body is still arriving."""
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
            self._refuse(431, "The request head is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = False

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > LINES:  # trailers of a chunked body arrive here too
            self._stop()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._size = 0

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/") and not self._names_us():
            self._refuse(421, "The request target names another host.")
            raise ValueError("refused")  # stop the parser
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
        """Reject bytes that are not valid HTTP, unless the request was already rejected."""
        if not self._refused:
            self._refuse(400, "The request is not valid HTTP.")

    def _names_us(self) -> bool:
        """Return True if an absolute request target, which takes precedence over the Host header, names this server."""
        try:
            target = urlsplit(self.url.decode("ascii"))
        except ValueError:
            return False
        return target.scheme == "http" and target.netloc.lower() in self._hosts

    def _stop(self) -> NoReturn:
        self._refuse(431, "The request head is too large.")
        raise ValueError("refused")  # stop the parser

    def _refuse(self, status: int, detail: str) -> None:
        self._refused = True
        self._done_waiting()
        code = {400: "bad_request", 408: "timeout", 421: "misdirected", 431: "headers_too_large"}[status]
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
        return cast("RequestResponseCycle | None", self.cycle)  # None before the first request

    def _wait(self) -> None:
        if (cycle := self._cycle) is None or cycle.response_complete:
            self._timer = self.loop.call_later(self._seconds, self._waited)

    def _waited(self) -> None:
        self._timer = None
        if self._size:
            self._refuse(408, f"The request head was not received within {self._seconds:g} seconds.")
        else:
            self.transport.close()

    def _done_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


CONNECTIONS = 10_000
"""Maximum number of connections; further ones receive 503."""

KEPT_ALIVE = 75
"""Seconds that an idle connection stays open."""

GRACE = 5
"""Seconds that open requests have to finish when the server stops."""

SWEEP = 5.0
"""Seconds between checks for runs whose process has died."""

log = logging.getLogger("moot.server")


async def run(
    loader: Loader,
    *,
    fixed: str,
    remote: bool,
    ready: Callable[[ServerInfo], Awaitable[None]],
    hide: Callable[[Sequence[str]], None],
    command: Sequence[str] = (),
) -> int:
    """Run the server until a signal stops it, and return the number of unfinished runs.

    `fixed` is the secret from MOOT_TOKEN. `remote` allows addresses that other machines can reach. `ready` is awaited when the server
    accepts requests. `hide` receives the secrets of a changed configuration, to mask them in logs. `command` starts a worker of this server
    if the configuration asks for several. Raise UsageError if the address is unavailable or not allowed. Raise Busy if another server uses
    this moot home.
    """
    settings = loader.current.settings
    raise_file_limit()
    if (worker := await this_worker()) is not None:
        return await _run_worker(worker, loader, fixed=fixed, hide=hide)
    with claim_home(settings.home) as announce:
        await anyio.to_thread.run_sync(clear_uploads, settings.home)
        if settings.server.workers > 1:
            return await _supervise(settings, command, announce, fixed=fixed, remote=remote, ready=ready)
        async with open_engine(settings, resume=True, loader=loader) as engine:
            listens = settings.server
            check_remote(listens.host, allowed=remote, fixed=fixed, tokens=len(await engine.store.tokens.list()))
            listening = bind(listens.host, listens.port)
            port = int(listening.getsockname()[1])
            server = _server(engine, port, fixed, hide)
            code = partial(server.tokens.code, LOCAL_USER)
            place = ServerInfo(url_of(listens.host, port), os.getpid(), is_built(), settings.imports.watch, code)
            server.import_watch.on_change = lambda follows: announce(replace(place, follows=follows))

            async def on_ready() -> None:
                announce(place)
                await ready(place)

            await warm(engine)
            async with anyio.create_task_group() as group:
                group.start_soon(_handle_signals, server, group.cancel_scope)
                await serve(create_app(server), listening, ready=on_ready)
                group.cancel_scope.cancel()
            return await _unfinished(engine)


def _server(engine: Engine, port: int, fixed: str, hide: Callable[[Sequence[str]], None], *, leads: bool = True) -> Server:
    listens = engine.settings.server
    server = Server(
        engine=engine,
        tokens=Credentials(engine.store, fixed=fixed),
        settings=listens,
        hosts=hosts_of(listens.host, port, listens),
        limits=Limits(body=listens.max_body),
        leads=leads,
    )
    server.configuration.on_change = partial(_on_change, hide)
    return server


async def _unfinished(engine: Engine) -> int:
    return len(await engine.store.records.runs(statuses=frozenset({"running", "queued"})))


async def _supervise(
    settings: Settings,
    command: Sequence[str],
    announce: Callable[[ServerInfo], None],
    *,
    fixed: str,
    remote: bool,
    ready: Callable[[ServerInfo], Awaitable[None]],
) -> int:
    """Implement `run` for several workers."""
    if sys.platform != "linux":  # elsewhere, the kernel does not distribute connections among processes
        raise UsageError("Multiple workers are supported only on Linux.", fix="Set server.workers to 1.")
    listens = settings.server
    async with await open_store(settings) as store:  # also upgrades the database, before the workers open it
        check_remote(listens.host, allowed=remote, fixed=fixed, tokens=len(await store.tokens.list()))
    bind(listens.host, listens.port).close()  # fails if any program listens there, even another server with several workers

    async def code() -> str:
        async with await open_store(settings) as store:
            return await Credentials(store, fixed=fixed).code(LOCAL_USER)

    with bind(listens.host, listens.port, shared=True, listens=False) as reserved, private_folder() as folder:
        port = int(reserved.getsockname()[1])
        place = ServerInfo(url_of(listens.host, port), os.getpid(), is_built(), settings.imports.watch, code)

        async def on_ready() -> None:
            announce(place)
            await ready(place)

        def on_follows(follows: bool) -> None:
            announce(replace(place, follows=follows))

        return await Supervisor(command, count=listens.workers, port=port, folder=folder, follows=on_follows).run(on_ready)


async def _run_worker(worker: Worker, loader: Loader, *, fixed: str, hide: Callable[[Sequence[str]], None]) -> int:
    """Implement `run` for one of several workers."""
    settings = loader.current.settings
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(settings, resume=True, upkeep=worker.leads, loader=loader))
        server = _server(engine, worker.port, fixed, hide, leads=worker.leads)
        app = create_app(server)
        if worker.leads:
            app.add_middleware(ForwardedClient)
        else:
            app.add_middleware(Forwarding, leader=await stack.enter_async_context(connected(worker.leader)))
        await warm(engine)
        listening = bind(settings.server.host, worker.port, shared=True)
        async with anyio.create_task_group() as group:

            def on_follows(follows: bool) -> None:
                group.start_soon(worker.report, "follows", follows)

            server.import_watch.on_change = on_follows
            group.start_soon(worker.obey, server.stopping.set, group.cancel_scope.cancel)
            group.start_soon(_stop_on_sigterm, server)
            own = worker.leader if worker.leads else ""
            await serve(app, listening, ready=partial(worker.report, "ready", True), own=own)
            group.cancel_scope.cancel()
        left = await _unfinished(engine)
        await worker.report("left", left)
        return left


def _on_change(hide: Callable[[Sequence[str]], None], change: Loaded | ConfigError) -> None:
    if isinstance(change, Loaded):
        hide(change.secrets)
    log_change(change)


async def serve(app: FastAPI, listening: socket.socket, *, ready: Callable[[], Awaitable[None]] | None = None, own: str = "") -> None:
    """Serve on the socket until `app.state.server.stopping` is set. Open requests have `GRACE` seconds to finish.

    `own` is the path of a second socket, on which the leader accepts the requests that other workers forward; empty = none.
    """
    server: Server = app.state.server
    listener = _Listener(_settings(app), ready)
    listeners = [listener, _Listener(_settings(app, own), None)] if own else [listener]
    if server.leads:
        host, port = listening.getsockname()[:2]
        await OutgoingWebhooks(server.engine.runtime, server.engine.runs.clock, url_of(host, port), pusher=server.pusher).start()
    async with anyio.create_task_group() as group:
        group.start_soon(partial(server.tokens.watch, revoked=server.streams.check))
        group.start_soon(_resume_runs, server.engine)
        if server.leads:
            group.start_soon(server.imports.work)
            group.start_soon(server.import_watch.work)
            group.start_soon(server.engine.cron.work)
            group.start_soon(server.engine.watchers.work)
            group.start_soon(serve_channels, server.engine)
        for other in listeners[1:]:
            group.start_soon(other.serve)
        group.start_soon(_stop, server, listeners)
        try:
            await listener.serve([listening])
        finally:
            listening.close()
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await server.tokens.note()


def _settings(app: FastAPI, socket: str | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        uds=socket,
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
    )


class _Listener(uvicorn.Server):
    """A uvicorn server that leaves signals to its caller and reports when it is ready."""

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


async def _stop(server: Server, listeners: Sequence[uvicorn.Server]) -> None:
    await server.stopping.wait()
    server.streams.check()
    for listener in listeners:
        listener.should_exit = True


async def _stop_on_sigterm(server: Server) -> None:
    """Shut a worker down gracefully on SIGTERM. Ctrl+C reaches the supervisor too, which stops its workers."""
    with anyio.open_signal_receiver(*STOPS) as signals:
        async for number in signals:
            if number == signal.SIGTERM:
                server.stopping.set()


async def _handle_signals(server: Server, scope: anyio.CancelScope) -> None:
    """Shut down gracefully on the first signal, immediately on the second."""
    with anyio.open_signal_receiver(*STOPS) as signals:
        async for _ in signals:
            if server.stopping.is_set():
                scope.cancel()
                return
            server.stopping.set()


async def _resume_runs(engine: Engine) -> None:
    """Resume runs whose process has died, if they may resume automatically."""
    while True:
        await anyio.sleep(SWEEP)
        try:
            await engine.runs.sweep(resume=True)
        except MootError as error:  # retried at the next check
            log.error("can't resume runs of dead processes: %s", error)
