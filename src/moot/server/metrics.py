"""What the server counts about itself, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector, generate_latest

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
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
