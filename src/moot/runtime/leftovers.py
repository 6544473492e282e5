"""Commands that outlived the moot that started them: they end with the run that they belong to, whoever ends it."""

from __future__ import annotations

import anyio

from moot.guard.processes import kill_leftover
from moot.runtime.journal import Journal
from moot.types.event import Event
from moot.types.store import Store

__all__ = ["kill_left_by", "kill_leftovers"]


async def kill_leftovers(journal: Journal) -> None:
    """Ends what a call left running that has no end: a crash cut it off, and nobody is going to look at what became of it."""
    for key, note in journal.notes.items():
        group, started = note.get("pgid"), note.get("started")
        if key not in journal.ends and isinstance(group, int) and isinstance(started, int | float | str):
            await kill_leftover(group, started)


async def kill_left_by(store: Store, conversation: str, run: str) -> None:
    """The same for a run that ended without being taken up; not given up halfway."""
    with anyio.CancelScope(shield=True):
        events: list[Event] = []
        while page := await store.log.read(conversation, after=events[-1].seq if events else 0, run=run):
            events += page
        await kill_leftovers(Journal(events))
