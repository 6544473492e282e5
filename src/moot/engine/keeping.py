"""Keeps the store small: seals conversations that have been quiet for a while, and gives free pages back, behind whatever else is done."""

from __future__ import annotations

import logging

import anyio

from moot.errors import StoreError
from moot.types.store import Store

__all__ = ["keep", "keep_for_a_moment"]

FIRST = 30.0
"""Seconds that a process has lived before it looks: what starts is in a hurry."""
AGAIN = 60.0
SHARE = 0.1
"""Of the time, at most."""
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


async def keep_for_a_moment(store: Store, quiet: float) -> None:
    """For those who only ever start a process for a prompt."""
    if not quiet:
        return
    try:
        async for _ in store.upkeep.seal(quiet=quiet, seconds=MOMENT):
            pass
    except StoreError as error:
        log.warning("the store was left as large as it is: %s", error)
