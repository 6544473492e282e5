"""Replay a run at its original speed, with long pauses shortened, and prepare branches for a side-by-side comparison."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from moot.convert.comparison import Side
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.run import Run
from moot.types.store import LogReader, OwnerStore

LONGEST = 2.0
"""Maximum number of seconds to wait between two events, before it is divided by the speed."""

INSTANT = 0.0
"""The speed that skips all waits."""

_PAGE = 512


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """An event, and the wait before it."""

    event: Event
    wait: float
    """The wait before the event, in seconds."""
    left_out: float
    """Number of seconds of the pause before the event that are skipped; 0 = none."""


async def timed_events(log: LogReader, run: Run, *, begin: int = 0, speed: float = 1.0) -> AsyncGenerator[TimedEvent, None]:
    """Yield the run's events starting at the seq `begin`. Speed 2 halves the waits; INSTANT removes them."""
    last: Event | None = None
    after = max(run.first_seq, begin) - 1
    while page := await log.read(run.conversation, after=after, limit=_PAGE, run=run.id, newest=True):
        for event in page:
            silence = max(0, event.at - last.at) / 1_000_000 if last is not None and speed != INSTANT else 0.0
            yield TimedEvent(event, min(silence, LONGEST) / (speed or 1.0), max(0.0, silence - LONGEST))
            last = event
        after = page[-1].seq


async def side_of(holdings: OwnerStore, conversation: Conversation) -> Side:
    """Return the current branch with the runs that wrote it."""
    messages = await holdings.conversations.branch(conversation.id)
    runs: dict[str, Run] = {}
    for message in messages:
        if message.run is not None:
            runs[message.run] = await holdings.records.run(message.run)
    return Side(conversation, messages, runs)
