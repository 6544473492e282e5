"""Forgetting behind everybody's back: what a crash cut off, and in servers what the rules say is over."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from moot.errors import MootError
from moot.types.retention import Retention
from moot.types.store import Store

__all__ = ["finish", "retain"]

FIRST = 30.0
"""Seconds that a process has lived before it looks: what starts is in a hurry."""
EVERY = 3600.0
"""Seconds between two looks at what is over."""
_AGAIN = 60.0
"""Seconds until the next look when a run is at work: while the file is written anew nobody can write."""

log = logging.getLogger("moot.engine")


async def finish(store: Store) -> None:
    """Goes on with purges and redactions that were cut off."""
    try:
        if await store.is_forgetting():
            for receipt in await store.forgetting.finish():
                log.info("%s %d, which was cut off, is %s", receipt.kind, receipt.no, "done" if receipt.done_at else "not done yet")
    except MootError as error:  # the next process tries again
        log.warning("what was to be forgotten is left for later: %s", error)


async def retain(store: Store, rules: Callable[[], Retention], every: float = EVERY) -> None:
    """Deletes and purges what is over, again and again, when no run is at work; never returns."""
    await anyio.sleep(min(FIRST, every))
    while True:
        busy = await store.records.runs(statuses=frozenset({"running"}), limit=1)
        if not busy:
            await _retained(store, rules())
        await anyio.sleep(min(_AGAIN, every) if busy else every)


async def _retained(store: Store, rules: Retention) -> None:
    try:
        over, receipt = await store.forgetting.expire(rules)
    except MootError as error:  # another process is at it, or the disk is full: the next look tries again
        log.warning("what is over was left for later: %s", error)
        return
    if over:
        deleted = sum(one.what == "delete" for one in over)
        log.info("%d conversations were deleted and %d purged, as the rules say", deleted, len(receipt.conversations) if receipt else 0)
