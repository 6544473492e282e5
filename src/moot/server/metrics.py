"""What the server counts about itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector, generate_latest

from moot.types.run import STARTED

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
