"""The embedding model, loaded on first use, and in servers background embedding of answers."""

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
"""Delay in seconds after the start of a server."""
AGAIN = 10.0
STRETCH = 60.0
"""Seconds after which other processes get a turn."""
SHARE = 0.25
"""Maximum fraction of the time to use."""

log = logging.getLogger("moot.engine")


class Meanings:
    """The embedding model of a process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._loading = anyio.Lock()
        self._embedder: Embedder | None = None

    def here(self) -> bool:
        """Return whether the extra and the weights are installed."""
        return self._embedder is not None or can_mean(self._home)

    async def embedder(self) -> Embedder:
        """Return the model. Raise UsageError with the command that installs what is missing, ProviderError for damaged weights."""
        async with self._loading:
            if self._embedder is None:
                self._embedder = await to_thread.run_sync(load, self._home)
            return self._embedder


async def read_on(store: Store, meanings: Meanings, *, first: float = FIRST, again: float = AGAIN) -> None:
    """Embed answers until cancelled if the model is installed. Only one process at a time works."""
    await anyio.sleep(first)
    while True:
        try:
            if meanings.here():
                await store.meaning.read(embedder=await meanings.embedder(), seconds=STRETCH, share=SHARE)
        except StoreError as error:  # answers without embeddings are stored safely too
            log.warning("could not embed answers: %s", error)
        except MootError as error:
            log.warning("semantic search is not available: %s", error.advice())
            return
        await anyio.sleep(again)
