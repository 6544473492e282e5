"""The OpenTelemetry SDK of this process: it sends spans and metrics by OTLP over HTTP, in background threads.

Runs never wait for the collector. If the collector can't be reached, moot warns once, and telemetry is lost.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from uuid import uuid4

from anyio import to_thread
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.view import Aggregation
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from moot import __version__
from moot.config.settings import Settings, TelemetrySettings
from moot.plugins.registry import attribute
from moot.providers.pool import Providers
from moot.runtime.telemetry.content import Content
from moot.runtime.telemetry.spans import RunIds, Tracing
from moot.types.store import Store

FLUSH_SECONDS = 2.0
"""Maximum time for sending what is left when the process ends."""

FAILING_SECONDS = 0.2
"""The same if the collector did not accept the last data."""

_OTLP = "opentelemetry.exporter.otlp.proto.http"
_SPANS, _METRICS = f"{_OTLP}.trace_exporter", f"{_OTLP}.metric_exporter"

log = logging.getLogger("moot.telemetry")


class Reporter(logging.Filter):
    """Reports the first failure, and keeps the exporters' own messages out of the log, because they repeat and contain URLs."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False
        """True while the collector does not accept data."""
        self.news = threading.Event()
        """Set after each failure."""
        self.is_closed = False
        self._own = threading.local()
        self._has_warned = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(self._own, "exports", False):
            return True  # another part of the program uses the same exporter
        self.fail()
        return False

    def watch(self, export: Callable[[], bool]) -> None:
        """Run an export in this thread, and report a failure."""
        self._own.exports = True
        try:
            succeeded = export()
        except Exception as error:  # noqa: BLE001  code of a package, in a background thread
            log.debug("the telemetry exporter failed: %r", error)
            succeeded = False
        finally:
            self._own.exports = False
        self.failing = not succeeded
        if not succeeded:
            self.fail()

    def fail(self) -> None:
        self.failing = True
        if not self._has_warned and not self.is_closed:
            self._has_warned = True
            log.warning("telemetry can't be sent: the collector can't be reached or rejects the data. Runs are not affected.")
        self.news.set()


class Spans(SpanExporter):
    """A wrapper of the SDK's exporter of spans. A failure is reported here, so that the SDK does not log it again."""

    def __init__(self, exporter: SpanExporter, reporter: Reporter) -> None:
        self._exporter, self._reporter, self._is_open = exporter, reporter, True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._reporter.watch(lambda: self._exporter.export(spans) is SpanExportResult.SUCCESS)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        if self._is_open:
            self._is_open = False
            self._exporter.shutdown()


class _Exporter(Protocol):
    """The part of the SDK's `MetricExporter` that is used here."""

    _preferred_temporality: dict[type, AggregationTemporality]
    _preferred_aggregation: dict[type, Aggregation]

    def export(self, metrics_data: MetricsData, /) -> MetricExportResult: ...
    def shutdown(self) -> None: ...


class Metrics(MetricExporter):
    """A wrapper of the SDK's exporter of metrics, like `Spans`."""

    def __init__(self, exporter: _Exporter, reporter: Reporter) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)  # pyright: ignore[reportPrivateUsage]
        self._exporter, self._reporter, self._is_open = exporter, reporter, True

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object) -> MetricExportResult:
        self._reporter.watch(lambda: self._exporter.export(metrics_data) is MetricExportResult.SUCCESS)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        if self._is_open:
            self._is_open = False
            self._exporter.shutdown()


class Sdk:
    """The providers of spans and metrics, with their background threads."""

    def __init__(self, settings: TelemetrySettings, *, spans: bool, metrics: bool) -> None:
        self._reporter = Reporter()
        self._exporters: list[Spans | Metrics] = []
        resource = Resource.create({SERVICE_NAME: _service_name(), SERVICE_VERSION: __version__, SERVICE_INSTANCE_ID: str(uuid4())})
        self.tracers = TracerProvider(resource=resource, id_generator=RunIds(), shutdown_on_exit=False)
        self.meters: MeterProvider | None = None
        if spans:
            exporter = Spans(attribute(f"{_SPANS}:OTLPSpanExporter")(**_target(settings, "traces")), self._reporter)
            self._exporters.append(exporter)
            self.tracers.add_span_processor(BatchSpanProcessor(exporter))
        if metrics:
            other = Metrics(attribute(f"{_METRICS}:OTLPMetricExporter")(**_target(settings, "metrics")), self._reporter)
            self._exporters.append(other)
            self.meters = MeterProvider([PeriodicExportingMetricReader(other)], resource=resource, shutdown_on_exit=False)
        for name in (_SPANS, _METRICS):
            logging.getLogger(name).addFilter(self._reporter)

    async def close(self) -> None:
        """Send what is left, for a limited time or until the collector fails, and stop."""
        reporter = self._reporter
        seconds = FAILING_SECONDS if reporter.failing else FLUSH_SECONDS
        reporter.news.clear()
        # a daemon thread, because a connection attempt can't be interrupted and must not delay the end of the process
        threading.Thread(target=self._flush, name="moot-telemetry", daemon=True).start()
        if not await to_thread.run_sync(reporter.news.wait, seconds):
            reporter.fail()
        reporter.is_closed = True
        for exporter in self._exporters:
            exporter.shutdown()  # interrupts the pause before a retry

    def _flush(self) -> None:
        self.tracers.force_flush()
        if self.meters is not None:
            self.meters.force_flush()
        self._reporter.is_closed = True
        self._reporter.news.set()
        self.tracers.shutdown()
        if self.meters is not None:
            self.meters.shutdown()
        for name in (_SPANS, _METRICS):
            logging.getLogger(name).removeFilter(self._reporter)


def _service_name() -> str:
    return os.environ.get("OTEL_SERVICE_NAME") or "moot"


def _target(settings: TelemetrySettings, signal: str) -> Mapping[str, object]:
    """Return the arguments of an exporter. Without an endpoint, it reads the OTEL_* environment variables."""
    headers = dict(settings.headers) or None
    return {"endpoint": f"{settings.endpoint.rstrip('/')}/v1/{signal}" if settings.endpoint else None, "headers": headers}


def open_telemetry(settings: Settings, store: Store, providers: Providers, *, spans: bool = True, metrics: bool = True) -> Tracing:
    """Return the telemetry of this process. Raise ImportError if a package is missing."""
    sdk = Sdk(settings.telemetry, spans=spans, metrics=metrics)
    keys = [provider.api_key for provider in settings.providers.values() if len(provider.api_key) >= 8]
    content = Content(keys) if settings.telemetry.content else None
    tracer, meters = sdk.tracers.get_tracer("moot", __version__), sdk.meters or NoOpMeterProvider()
    meter = meters.get_meter("moot", __version__)
    return Tracing(tracer, meter, store, providers, content=content, propagate=settings.telemetry.propagate, flush=sdk.close)
