"""Background maintenance: seals idle conversations, returns free pages to the file system, and in servers fills the search index and
the statistics."""

from __future__ import annotations

import logging

import anyio

from moot.errors import StoreError
from moot.types.store import Store

__all__ = ["index_on", "keep", "keep_for_a_moment"]

FIRST = 30.0
"""Delay in seconds after the start of the process, which should start quickly."""
AGAIN = 60.0
SHARE = 0.1
"""Maximum fraction of the time to use."""
SOON = 5.0
"""Seconds between two rounds of indexing."""
STRETCH = 2.0
"""Seconds of indexing after which another process gets a turn."""
MOMENT = 0.25
"""Seconds to spend on sealing when the process ends. Processes that run longer do the rest."""
FREE = 32 << 20
"""Bytes of free pages to keep in the file for new data."""

log = logging.getLogger("moot.engine")


async def keep(store: Store, quiet: float, *, first: float = FIRST, again: float = AGAIN) -> None:
    """Seal and shrink until cancelled. Only one process at a time works, the others retry later. Does nothing if `quiet` is 0."""
    await anyio.sleep(first)
    while quiet:
        try:
            async for _ in store.upkeep.seal(quiet=quiet, share=SHARE):
                pass
            async for _ in store.upkeep.give_back(keep=FREE, share=SHARE):
                pass
        except StoreError as error:  # unsealed data is stored safely too
            log.warning("could not compact the store: %s", error)
        await anyio.sleep(again)


async def index_on(store: Store, *, first: float = SOON, again: float = SOON) -> None:
    """Index new messages until cancelled, so that searches have nothing to catch up on."""
    await anyio.sleep(first)
    while True:
        try:
            await store.search.index(seconds=STRETCH)
            await store.stats.count(seconds=STRETCH)
        except StoreError as error:  # the next search or statistics command catches up
            log.warning("could not update the search index or the statistics: %s", error)
        await anyio.sleep(again)


async def keep_for_a_moment(store: Store, quiet: float) -> None:
    """Seal for a short time, for users whose processes only run a single prompt."""
    if not quiet:
        return
    try:
        async for _ in store.upkeep.seal(quiet=quiet, seconds=MOMENT):
            pass
    except StoreError as error:
        log.warning("could not compact the store: %s", error)
