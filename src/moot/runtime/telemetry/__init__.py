"""OpenTelemetry: spans and metrics, made from the events of runs.

This file checks the configuration. The SDK is imported only if telemetry is on.
"""

from __future__ import annotations

import os

from moot.config.settings import Settings
from moot.errors import ConfigError
from moot.plugins.registry import attribute
from moot.providers.pool import Providers
from moot.types.store import Store
from moot.types.telemetry import Telemetry

_OPEN = "moot.runtime.telemetry.exporters:open_telemetry"


def open_telemetry(settings: Settings, store: Store, providers: Providers) -> Telemetry | None:
    """Return the telemetry of this process, or None if it is off. Raise ConfigError if it can't work as configured."""
    if not settings.telemetry.enabled or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    signals = {name: _is_exported(name) for name in ("TRACES", "METRICS")}
    for variable in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"):
        if (protocol := os.environ.get(variable, "")) not in ("", "http/protobuf"):
            raise ConfigError(f"{variable} is {protocol!r}, but moot sends telemetry only by http/protobuf.", fix=f"Unset {variable}.")
    try:
        found: Telemetry = attribute(_OPEN)(settings, store, providers, spans=signals["TRACES"], metrics=signals["METRICS"])
    except ImportError as error:
        if (error.name or "moot").startswith("moot"):
            raise
        message = "The setting telemetry.enabled needs OpenTelemetry, which is not installed."
        raise ConfigError(message, fix="Run `pip install 'moot[otel]'`, or set telemetry.enabled to false.") from error
    except ValueError as error:
        raise ConfigError(f"An OTEL_* environment variable has an invalid value: {error}.", fix="Correct or unset it.") from error
    return found


def _is_exported(signal: str) -> bool:
    """Return whether a signal is sent, by its environment variable."""
    variable = f"OTEL_{signal}_EXPORTER"
    value = os.environ.get(variable, "") or "otlp"
    if value not in ("otlp", "none"):
        raise ConfigError(f"{variable} is {value!r}, but moot supports only 'otlp' and 'none'.", fix=f"Unset {variable}.")
    return value == "otlp"
