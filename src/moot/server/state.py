"""State shared by all requests of one server: engine, configuration and metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import anyio
from anyio import to_thread
from fastapi import Depends
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector, generate_latest
from starlette.requests import HTTPConnection

from moot.config.loading import Loaded, Loader
from moot.config.settings import ServerSettings
from moot.engine import Engine
from moot.errors import ConfigError
from moot.server.caches import Given, Streams
from moot.server.credentials import Credentials, Tries
from moot.server.imports import Following, ImportJobs
from moot.types.run import STARTED

LOOK = 0.5
"""Seconds between two looks at the file; a change is taken up once it has stayed for one."""

log = logging.getLogger("moot.server")


class Configuration:
    """What is changed holds for the next step of every run."""

    def __init__(self, engine: Engine, loader: Loader, hide: Callable[[Sequence[str]], None] | None = None) -> None:
        """`hide` is told the secrets of what is taken up, so that no log line holds one."""
        self._engine = engine
        self._loader = loader
        self._hide = hide

    @property
    def loaded(self) -> Loaded:
        """What is in force, with where each value was written."""
        return self._loader.current

    @property
    def error(self) -> ConfigError | None:
        """What is wrong with the file as it stands now; None when it is in force."""
        return self._loader.error

    async def reload(self) -> bool:
        """Takes the file up as it is now; False, with `error` set, when it is wrong."""
        if not await to_thread.run_sync(self._loader.reload):
            log.warning("the configuration from before stays in force: %s", self._loader.error)
            return False
        if self._hide is not None:
            self._hide(self.loaded.secrets)
        self._engine.runtime.settings = self.loaded.settings
        self._engine.providers.update(self.loaded.settings)
        log.info("the configuration was read again")
        return True

    async def watch(self) -> None:
        """Takes up what is changed, for as long as it is not cancelled."""
        before = self._loader.stamp()
        while True:
            await anyio.sleep(LOOK)
            now = self._loader.stamp()
            if now == before and self._loader.is_stale():
                await self.reload()
            before = now


SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """One server's own registry: two servers in a process do not count for each other."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.requests = Counter("moot_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry)
        self.durations = Histogram(
            "moot_request_seconds", "Time to the first byte of an answer.", ("method", "route"), buckets=SECONDS, registry=self.registry
        )
        self.streams = Gauge("moot_open_streams", "Streams that are open now.", registry=self.registry)
        self.cut = Counter("moot_slow_watchers_cut", "Streams closed because their reader was too slow.", registry=self.registry)
        self.refused = Counter("moot_requests_refused", "Requests refused at the border.", ("reason",), registry=self.registry)
        self.runs = Gauge("moot_live_runs", "Runs that have begun and not ended, of all processes.", ("status",), registry=self.registry)
        self.events = Counter("moot_events_appended", "Events that this process's runs have appended.", registry=self.registry)
        self._appended = 0
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def text(self, live: Mapping[str, int], appended: int) -> bytes:
        """All of it in Prometheus' text format, with the live runs by status and the events appended so far."""
        for status in STARTED:
            self.runs.labels(status).set(live.get(status, 0))
        self.events.inc(appended - self._appended)
        self._appended = appended
        return generate_latest(self.registry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of anything a caller may take."""

    body: int = 32 * 1024 * 1024
    """Bytes of a request's body."""
    head: float = 15.0
    """Seconds for the head of a request, and for a new connection to begin with one."""
    silence: float = 30.0
    """Seconds without a byte after which a body that is still to come is given up."""
    logins: int = 20
    """Wrong codes and tokens that one address may try to sign in with in a minute."""
    guesses: int = 300
    """Wrong tokens that one address may send with requests in a minute."""
    views: int = 120
    """Shared pages that one address may ask for in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server: the engine under it, and what it knows of its callers."""

    engine: Engine
    tokens: Credentials
    configuration: Configuration
    settings: ServerSettings = field(default_factory=ServerSettings)
    hosts: frozenset[str] = frozenset()
    """What a request's Host may say, in lower case and with the port."""
    metrics: Metrics = field(default_factory=Metrics)
    limits: Limits = field(default_factory=Limits)
    given: Given = field(default_factory=Given)
    """The answers that callers of `/v1` may go on from."""
    streams: Streams = field(default_factory=Streams)
    imports: ImportJobs = field(default_factory=ImportJobs)
    following: Following = field(init=False)
    changing: anyio.Lock = field(default_factory=anyio.Lock)
    """Held from looking at an `If-Match` to the change that it guards: of two at once one must see the other's."""
    logins: Tries = field(init=False)
    guesses: Tries = field(init=False)
    views: Tries = field(init=False)
    stopping: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server is about to stop: open streams say so and end."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "following", Following(self.engine))
        object.__setattr__(self, "logins", Tries(self.limits.logins))
        object.__setattr__(self, "guesses", Tries(self.limits.guesses))
        object.__setattr__(self, "views", Tries(self.limits.views, what="requests for shared pages"))


def server_of(connection: HTTPConnection) -> Server:
    """The server that a request came to."""
    server: Server = connection.app.state.server
    return server


async def _here(connection: HTTPConnection) -> Server:
    return server_of(connection)  # FastAPI hands whatever is not async to a thread, which costs more than most routes do


Here = Annotated[Server, Depends(_here)]
"""The server, as an argument of a route."""
