"""State shared by all requests of one server: engine, configuration and metrics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import anyio
from fastapi import Depends
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import HTTPConnection

from moot.config.settings import ServerSettings
from moot.engine import Engine
from moot.features.projects.completion import FileIndexes
from moot.features.renderer import Renderer
from moot.features.webhooks.push import POLICY, Pusher
from moot.guard.urls import Policy
from moot.runtime.configuration import Configuration
from moot.server.caches import AnswerIndex, Streams
from moot.server.credentials import AttemptLimit, Credentials
from moot.server.imports import ImportJobs, ImportWatch
from moot.types.run import STARTED

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


METRICS = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of `prometheus_client`: the folder in which all workers count. Their sums are reported, without process metrics."""


class Metrics:
    """Metrics in a registry of their own, so that two servers in one process are counted separately."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.requests = Counter("moot_requests", "Number of answered requests.", ("method", "route", "status"), registry=self.registry)
        self.durations = Histogram(
            "moot_request_seconds", "Time to the first byte of a response.", ("method", "route"), buckets=SECONDS, registry=self.registry
        )
        self.streams = Gauge("moot_open_streams", "Number of open streams.", registry=self.registry, multiprocess_mode="livesum")
        self.cut = Counter("moot_slow_watchers_cut", "Number of streams closed because the client was too slow.", registry=self.registry)
        self.refused = Counter(
            "moot_requests_refused", "Number of requests rejected by the host and origin checks.", ("reason",), registry=self.registry
        )
        self.runs = Gauge(
            "moot_live_runs",
            "Number of runs in progress in all processes.",
            ("status",),
            registry=self.registry,
            multiprocess_mode="mostrecent",
        )
        self.events = Counter("moot_events_appended", "Number of events stored by runs of this server.", registry=self.registry)
        self._appended = 0
        if METRICS in os.environ:
            self.registry = CollectorRegistry()
            MultiProcessCollector(self.registry)
        else:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)

    def text(self, live: Mapping[str, int], appended: int) -> bytes:
        """Return all metrics in the Prometheus text format.

        `live` is the number of live runs by status, `appended` that of stored events.
        """
        for status in STARTED:
            self.runs.labels(status).set(live.get(status, 0))
        self.events.inc(appended - self._appended)
        self._appended = appended
        return generate_latest(self.registry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests."""

    body: int = 32 * 1024 * 1024
    """Maximum size of a request body in bytes."""
    head: float = 15.0
    """Seconds within which a request head must arrive, and a new connection must send data."""
    silence: float = 30.0
    """Seconds without data after which an incomplete request body is rejected."""
    logins: int = 20
    """Maximum number of failed sign-in attempts per address and minute."""
    guesses: int = 300
    """Maximum number of requests with invalid tokens per address and minute."""
    views: int = 120
    """Maximum number of requests for shared pages per address and minute."""
    push: Policy = POLICY
    """Limits on requests to push services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """State of one server that all its requests share."""

    engine: Engine
    tokens: Credentials
    settings: ServerSettings = field(default_factory=ServerSettings)
    hosts: frozenset[str] = frozenset()
    """Accepted values of the Host header, in lower case and with the port."""
    metrics: Metrics = field(default_factory=Metrics)
    limits: Limits = field(default_factory=Limits)
    answers: AnswerIndex = field(default_factory=AnswerIndex)
    """Index of answers, for `/v1` callers that continue from an earlier answer."""
    streams: Streams = field(default_factory=Streams)
    imports: ImportJobs = field(default_factory=ImportJobs)
    import_watch: ImportWatch = field(init=False)
    files: FileIndexes = field(default_factory=FileIndexes)
    """Indexes of folders, for completion."""
    renderer: Renderer = field(default_factory=Renderer)
    """Renderer of exports and shared pages."""
    change_lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Lock held from checking `If-Match` until the change is applied, so that concurrent changes are detected."""
    logins: AttemptLimit = field(init=False)
    guesses: AttemptLimit = field(init=False)
    views: AttemptLimit = field(init=False)
    stopping: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server is shutting down; open streams end then."""
    leads: bool = True
    """False in a worker that is not the leader: it only serves streams and runs agents."""

    @property
    def configuration(self) -> Configuration:
        """The configuration, which is reloaded when its files change."""
        assert self.engine.configuration is not None
        return self.engine.configuration

    @property
    def pusher(self) -> Pusher:
        """The sender of notifications to devices."""
        runtime = self.engine.runtime
        return Pusher(runtime.store, runtime.settings.home, runtime.clock, contact=self.settings.push_contact, policy=self.limits.push)

    def __post_init__(self) -> None:
        object.__setattr__(self, "import_watch", ImportWatch(self.engine))
        object.__setattr__(self, "logins", AttemptLimit(self.limits.logins))
        object.__setattr__(self, "guesses", AttemptLimit(self.limits.guesses))
        object.__setattr__(self, "views", AttemptLimit(self.limits.views, what="requests for shared pages"))


def server_of(connection: HTTPConnection) -> Server:
    """Return the server of a request."""
    server: Server = connection.app.state.server
    return server


async def _server(connection: HTTPConnection) -> Server:
    return server_of(connection)  # async, because FastAPI runs other functions in a thread


CurrentServer = Annotated[Server, Depends(_server)]
"""Type of route parameters that receive the Server."""
