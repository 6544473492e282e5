"""The model of meanings, loaded when somebody first asks; in servers the reading of what was said, behind whatever else is done."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
from anyio import to_thread

from moot.errors import MootError, StoreError
from moot.providers.meaning.having import can_mean, load
from moot.types.meaning import Embedder
from moot.types.store import Store

__all__ = ["Meanings", "read_on"]

FIRST = 30.0
"""Seconds that a server has lived before it looks."""
AGAIN = 10.0
STRETCH = 60.0
"""Seconds after which others get a turn at it."""
SHARE = 0.25
"""Of the time, at most."""

log = logging.getLogger("moot.engine")


class Meanings:
    """One model for a whole process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._loading = anyio.Lock()
        self._embedder: Embedder | None = None

    def here(self) -> bool:
        """Whether extra and weights are."""
        return self._embedder is not None or can_mean(self._home)

    async def embedder(self) -> Embedder:
        """Raises UsageError naming the command that brings what is missing, ProviderError for damaged weights."""
        async with self._loading:
            if self._embedder is None:
                self._embedder = await to_thread.run_sync(load, self._home)
            return self._embedder


async def read_on(store: Store, meanings: Meanings, *, first: float = FIRST, again: float = AGAIN) -> None:
    """For as long as it is let: reads answers for their meaning where the model is here; one process at a time does."""
    await anyio.sleep(first)
    while True:
        try:
            if meanings.here():
                await store.meaning.read(embedder=await meanings.embedder(), seconds=STRETCH, share=SHARE)
        except StoreError as error:  # what is not read is stored all the same
            log.warning("answers were left unread for their meaning: %s", error)
        except MootError as error:
            log.warning("meanings can't be read: %s", error.advice())
            return
        await anyio.sleep(again)
