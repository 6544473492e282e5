"""Telemetry: the Protocol of its implementation, and the trace context of the current task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Protocol

from moot.types.event import Event
from moot.types.run import Run
from moot.types.store import RunSnapshot

TRACEPARENT = "traceparent"
"""Name of the W3C header, and of the run setting that contains the parent of the run's spans."""

CURRENT: ContextVar[str] = ContextVar("moot_trace", default="")
"""The span to which new spans and runs of this task belong, as a `traceparent`; empty = none."""

OUTGOING: ContextVar[str] = ContextVar("moot_outgoing_trace", default="")
"""The `traceparent` to send with this task's requests to providers; empty = send none."""

_VALID = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def valid_traceparent(header: str) -> str:
    """Return the header, or an empty string if it is not a valid `traceparent` of version 00."""
    return header if _VALID.fullmatch(header) else ""


class ObservedLeg(Protocol):
    """A leg of a run that is being observed."""

    run: Run | None
    """The run after the leg; set by the caller when the leg has ended. None = the leg was cut off."""


class Telemetry(Protocol):
    """Spans and metrics of one process. No method raises errors or waits for the network, except `aclose`, whose wait is short."""

    def traceparent(self) -> str:
        """Return the parent for a run that is submitted in this task; empty = none."""
        ...

    def leg(self, snapshot: RunSnapshot) -> AbstractAsyncContextManager[ObservedLeg]:
        """Observe a leg for the duration of the block."""
        ...

    def record(self, events: Sequence[Event]) -> None:
        """Observe committed events. Called once for each append of this process."""
        ...

    async def aclose(self) -> None:
        """Send what was not sent yet, for a limited time."""
        ...
