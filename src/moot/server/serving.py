"""Runs the server until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread
import uvicorn
from fastapi import FastAPI

from moot.config.loading import Loader
from moot.engine import Engine, open_engine
from moot.engine.servers import Serving, claimed
from moot.engine.warming import warm
from moot.errors import MootError
from moot.server.app import create_app
from moot.server.configuration import Configuration
from moot.server.connection import Connection
from moot.server.credentials import Credentials
from moot.server.origins import hosts_of
from moot.server.pages import is_built
from moot.server.sockets import BACKLOG, bind, check_remote, raise_file_limit, url_of
from moot.server.state import Limits, Server
from moot.server.uploading import clear_uploads
from moot.types.token import LOCAL_USER

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
    ready: Callable[[Serving], Awaitable[None]],
    hide: Callable[[Sequence[str]], None],
) -> int:
    """Serves the home of that configuration until a signal; how many runs are left to go on with the next server.

    `fixed` is the secret that MOOT_TOKEN holds; `ready` is awaited once requests are answered. Raises UsageError for an address that
    can't be had or may not be listened on, Busy when the home is served already.
    """
    settings = loader.current.settings
    raise_file_limit()
    with claimed(settings.home) as told:
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
            place = Serving(url_of(listens.host, port), os.getpid(), is_built(), settings.imports.watch, code)
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


async def _tell(told: Callable[[Serving], None], ready: Callable[[Serving], Awaitable[None]], place: Serving) -> None:
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
