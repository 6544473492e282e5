"""Background deletion: finishing interrupted purges and redactions, and in servers applying the retention rules."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from moot.errors import MootError
from moot.types.retention import Retention
from moot.types.store import Store

__all__ = ["finish", "retain"]

FIRST = 30.0
"""Delay in seconds after the start of the process, which should start quickly."""
EVERY = 3600.0
"""Seconds between two checks for expired conversations."""
_AGAIN = 60.0
"""Seconds until the next check if a run is active, because no one can write while the file is rewritten."""

log = logging.getLogger("moot.engine")


async def finish(store: Store) -> None:
    """Continue interrupted purges and redactions."""
    try:
        if await store.is_forgetting():
            for receipt in await store.forgetting.finish():
                log.info("interrupted %s %d is %s", receipt.kind, receipt.no, "complete" if receipt.done_at else "still incomplete")
    except MootError as error:  # the next process tries again
        log.warning("purges and redactions are postponed: %s", error)


async def retain(store: Store, rules: Callable[[], Retention], every: float = EVERY) -> None:
    """Delete and purge expired conversations periodically while no run is active. Never returns."""
    await anyio.sleep(min(FIRST, every))
    while True:
        busy = await store.records.runs(statuses=frozenset({"running"}), limit=1)
        if not busy:
            await _apply(store, rules())
        await anyio.sleep(min(_AGAIN, every) if busy else every)


async def _apply(store: Store, rules: Retention) -> None:
    try:
        over, receipt = await store.forgetting.expire(rules)
    except MootError as error:  # another process is doing it, or the disk is full; the next check tries again
        log.warning("expired conversations are kept for now: %s", error)
        return
    if over:
        deleted = sum(one.what == "delete" for one in over)
        log.info("deleted %d and purged %d expired conversations", deleted, len(receipt.conversations) if receipt else 0)
