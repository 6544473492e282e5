"""Replay of a run's events with their original timing, except for long pauses."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from moot.types.event import Event
from moot.types.run import Run
from moot.types.store import LogReading

__all__ = ["INSTANT", "LONGEST", "Beat", "beats"]

LONGEST = 2.0
"""Maximum wait in seconds between two events, before the speed is applied."""

INSTANT = 0.0
"""A speed without any waits."""

_PAGE = 512


@dataclass(frozen=True, slots=True)
class Beat:
    """An event and the wait before it."""

    event: Event
    wait: float
    """Seconds."""
    left_out: float
    """Seconds of the pause before the event that are skipped; 0 = none."""


async def beats(log: LogReading, run: Run, *, begin: int = 0, speed: float = 1.0) -> AsyncGenerator[Beat, None]:
    """Yield the run's events starting at the seq `begin`. Speed 2 halves the waits; INSTANT removes them."""
    last: Event | None = None
    after = max(run.first_seq, begin) - 1
    while page := await log.read(run.conversation, after=after, limit=_PAGE, run=run.id, newest=True):
        for event in page:
            yield _beat(last, event, speed)
            last = event
        after = page[-1].seq


def _beat(last: Event | None, event: Event, speed: float) -> Beat:
    silence = max(0, event.at - last.at) / 1_000_000 if last is not None else 0.0
    if speed == INSTANT:
        return Beat(event, 0.0, 0.0)
    return Beat(event, min(silence, LONGEST) / speed, max(0.0, silence - LONGEST))
