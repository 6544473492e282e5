"""Live runs of conversations."""

from __future__ import annotations

from moot.types.run import STARTED, RunStatus
from moot.types.store import Store

QUEUED: frozenset[RunStatus] = frozenset({"queued"})


async def live_statuses(store: Store) -> dict[str, RunStatus]:
    """Return the status of each conversation's live run by conversation id."""
    runs = await store.records.runs(statuses=STARTED | QUEUED)
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}
