"""An OpenTelemetry collector on loopback, for tests of what moot sends."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Collector(ThreadingHTTPServer):
    """A context manager that records the requests it gets."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def resources(self) -> list[Any]:
        """Return the resources with spans that arrived, decoded by the official package. Skip the test if it is not installed."""
        service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
        bodies = [body for path, _, body in self.received if path == "/v1/traces"]
        return [one for body in bodies for one in service.ExportTraceServiceRequest.FromString(body).resource_spans]

    def spans(self) -> list[Any]:
        return [span for resource in self.resources() for scope in resource.scope_spans for span in scope.spans]

    def metric_names(self) -> set[str]:
        service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
        bodies = [body for path, _, body in self.received if path == "/v1/metrics"]
        resources = [one for body in bodies for one in service.ExportMetricsServiceRequest.FromString(body).resource_metrics]
        return {metric.name for resource in resources for scope in resource.scope_metrics for metric in scope.metrics}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.received.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
