"""Commands that outlived the process that started them. They are killed when their run ends."""

from __future__ import annotations

import anyio

from moot.guard.processes import kill_leftover
from moot.runtime.journal import Journal
from moot.types.event import Event
from moot.types.store import Store

__all__ = ["kill_left_by", "kill_leftovers"]


async def kill_leftovers(journal: Journal) -> None:
    """Kill commands of calls without an end, which were interrupted by a crash."""
    for key, note in journal.notes.items():
        group, started = note.get("pgid"), note.get("started")
        if key not in journal.ends and isinstance(group, int) and isinstance(started, int | float | str):
            await kill_leftover(group, started)


async def kill_left_by(store: Store, conversation: str, run: str) -> None:
    """Kill such commands of a run that ends without being resumed. Not cancellable."""
    with anyio.CancelScope(shield=True):
        events: list[Event] = []
        while page := await store.log.read(conversation, after=events[-1].seq if events else 0, run=run):
            events += page
        await kill_leftovers(Journal(events))
