"""A run's events once more, as they came: what lies between two of them is waited for again, but for long silences."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from moot.types.event import Event
from moot.types.run import Run
from moot.types.store import LogReading

__all__ = ["INSTANT", "LONGEST", "Beat", "beats"]

LONGEST = 2.0
"""Seconds of silence that are waited for at most, before the speed counts: nobody wants to see how long somebody thought."""

INSTANT = 0.0
"""The speed at which nothing is waited for."""

_PAGE = 512


@dataclass(frozen=True, slots=True)
class Beat:
    """An event, and how long it is waited for."""

    event: Event
    wait: float
    """Seconds."""
    left_out: float
    """Seconds of the silence before it that are not waited for; 0 = all of it is."""


async def beats(log: LogReading, run: Run, *, begin: int = 0, speed: float = 1.0) -> AsyncGenerator[Beat, None]:
    """The events of a run from the seq `begin` on. At speed 2 it takes half the time; INSTANT waits for nothing."""
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
