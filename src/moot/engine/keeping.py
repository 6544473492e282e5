"""Keeps the store small and findable, behind whatever else is done: seals conversations that have been quiet for a while, gives free pages
back, and in servers fills the index and the counts."""

from __future__ import annotations

import logging

import anyio

from moot.errors import StoreError
from moot.types.store import Store

__all__ = ["index_on", "keep", "keep_for_a_moment"]

FIRST = 30.0
"""Seconds that a process has lived before it looks: what starts is in a hurry."""
AGAIN = 60.0
SHARE = 0.1
"""Of the time, at most."""
SOON = 5.0
"""Seconds between two looks at what is not indexed yet."""
STRETCH = 2.0
"""Seconds of indexing after which another process gets a turn at it."""
MOMENT = 0.25
"""Seconds that closing may spend on it; a process that lives longer does the rest."""
FREE = 32 << 20
"""Bytes of free pages that stay in the file: what is said next is written there."""

log = logging.getLogger("moot.engine")


async def keep(store: Store, quiet: float, *, first: float = FIRST, again: float = AGAIN) -> None:
    """For as long as it is let: one process at a time does it, the others look again later. Nothing for a `quiet` of 0."""
    await anyio.sleep(first)
    while quiet:
        try:
            async for _ in store.upkeep.seal(quiet=quiet, share=SHARE):
                pass
            async for _ in store.upkeep.give_back(keep=FREE, share=SHARE):
                pass
        except StoreError as error:  # what is not sealed is stored all the same
            log.warning("the store was left as large as it is: %s", error)
        await anyio.sleep(again)


async def index_on(store: Store, *, first: float = SOON, again: float = SOON) -> None:
    """For as long as it is let: takes up what was said, so that a search has nothing to catch up with."""
    await anyio.sleep(first)
    while True:
        try:
            await store.search.index(seconds=STRETCH)
            await store.stats.count(seconds=STRETCH)
        except StoreError as error:  # a search or a look at the sums makes up for it
            log.warning("the search index or the counts were left for later: %s", error)
        await anyio.sleep(again)


async def keep_for_a_moment(store: Store, quiet: float) -> None:
    """For those who only ever start a process for a prompt."""
    if not quiet:
        return
    try:
        async for _ in store.upkeep.seal(quiet=quiet, seconds=MOMENT):
            pass
    except StoreError as error:
        log.warning("the store was left as large as it is: %s", error)
