"""Background work: seal and shrink the store, index and embed messages, finish purges, and apply the retention rules."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import cast

import anyio
from anyio import to_thread

from moot.errors import MootError, StoreError
from moot.plugins.registry import attribute
from moot.types.limits import Retention
from moot.types.search import Embedder
from moot.types.store import Store

START_DELAY = 30.0
"""Delay in seconds after the start of the process, which should start quickly."""
SEAL_INTERVAL = 60.0
SEAL_SHARE = 0.1
"""Maximum fraction of the time to spend on this work."""
INDEX_INTERVAL = 5.0
"""Seconds between two rounds of indexing."""
INDEX_SECONDS = 2.0
"""Number of seconds of indexing after which another process gets a turn."""
CLOSING_SECONDS = 0.25
"""Maximum number of seconds to spend on sealing when the process ends. Longer-running processes do the rest."""
KEPT_FREE_BYTES = 32 << 20
"""Size of the free pages to keep in the database file for new data, in bytes."""

log = logging.getLogger("moot.engine")


async def seal_periodically(store: Store, quiet: float, *, first: float = START_DELAY, again: float = SEAL_INTERVAL) -> None:
    """Seal and shrink the store periodically until cancelled.
    Only one process does this at a time; others retry later. Do nothing if `quiet` is 0.
    """
    await anyio.sleep(first)
    while quiet:
        try:
            async for _ in store.upkeep.seal(quiet=quiet, share=SEAL_SHARE):
                pass
            async for _ in store.upkeep.give_back(keep=KEPT_FREE_BYTES, share=SEAL_SHARE):
                pass
        except StoreError as error:  # unsealed data is also stored safely
            log.warning("could not compress old events: %s", error)
        await anyio.sleep(again)


async def index_periodically(store: Store, *, first: float = INDEX_INTERVAL, again: float = INDEX_INTERVAL) -> None:
    """Index new messages periodically until cancelled, so that searches don't have to."""
    await anyio.sleep(first)
    while True:
        try:
            await store.search.index(seconds=INDEX_SECONDS)
            await store.stats.count(seconds=INDEX_SECONDS)
        except StoreError as error:  # the next search or statistics command catches up
            log.warning("could not update the search index or the statistics: %s", error)
        await anyio.sleep(again)


async def seal_briefly(store: Store, quiet: float) -> None:
    """Spend a short time on sealing, for users whose processes only ever run a single prompt."""
    if not quiet:
        return
    try:
        async for _ in store.upkeep.seal(quiet=quiet, seconds=CLOSING_SECONDS):
            pass
    except StoreError as error:
        log.warning("could not compress old events: %s", error)


RETAIN_DELAY = 30.0
"""Delay in seconds after the start of the process, which should start quickly."""
RETAIN_INTERVAL = 3600.0
"""Seconds between two checks for expired conversations."""
_BUSY_INTERVAL = 60.0
"""Number of seconds until the next check if a run is active, because nothing can be written while the file is being rewritten."""


async def finish_interrupted(store: Store) -> None:
    """Continue interrupted purges and redactions, and purge temporary conversations whose program did not end normally."""
    try:
        if await store.has_pending_erasure():
            await _apply(store, Retention(trash_days=0))  # no other rules: only a server applies the configured ones
            for receipt in await store.erasure.finish():
                log.info("interrupted %s %d is %s", receipt.kind, receipt.no, "complete" if receipt.done_at else "still incomplete")
    except MootError as error:  # the next process tries again
        log.warning("purges and redactions are postponed: %s", error)


async def apply_retention(store: Store, rules: Callable[[], Retention], every: float = RETAIN_INTERVAL) -> None:
    """Delete and purge expired conversations periodically, while no run is active. This function never returns."""
    await anyio.sleep(min(RETAIN_DELAY, every))
    while True:
        busy = await store.records.runs(statuses=frozenset({"running"}), limit=1)
        if not busy:
            await _apply(store, rules())
        await anyio.sleep(min(_BUSY_INTERVAL, every) if busy else every)


async def _apply(store: Store, rules: Retention) -> None:
    try:
        over, receipt = await store.erasure.expire(rules)
    except MootError as error:  # another process is doing it, or the disk is full; the next check tries again
        log.warning("expired conversations are kept for now: %s", error)
        return
    if over:
        deleted = sum(one.what == "delete" for one in over)
        log.info("deleted %d and purged %d expired conversations", deleted, len(receipt.conversations) if receipt else 0)


EMBED_DELAY = 30.0
"""Delay in seconds after the start of a server."""
EMBED_INTERVAL = 10.0
EMBED_SECONDS = 60.0
"""Number of seconds after which other processes get a turn."""
EMBED_SHARE = 0.25
"""Maximum fraction of the time to spend on this work."""
# loaded by path: only semantic search needs them
_IS_AVAILABLE = "moot.providers.embedding:is_available"
_LOAD_EMBEDDER = "moot.providers.embedding:load_embedder"


class EmbeddingModel:
    """The embedding model of a process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._loading = anyio.Lock()
        self._embedder: Embedder | None = None

    def here(self) -> bool:
        """Return whether the optional packages and the weights are installed."""
        return self._embedder is not None or attribute(_IS_AVAILABLE)(self._home)

    async def embedder(self) -> Embedder:
        """Return the embedding model. If something is missing, raise UsageError with the command that installs it.
        Raise ProviderError if the weights are damaged.
        """
        async with self._loading:
            embedder = self._embedder or cast("Embedder", await to_thread.run_sync(attribute(_LOAD_EMBEDDER), self._home))
            self._embedder = embedder
            return embedder


async def embed_periodically(store: Store, meanings: EmbeddingModel, *, first: float = EMBED_DELAY, again: float = EMBED_INTERVAL) -> None:
    """Embed answers until cancelled if the model is installed. Only one process does this at a time."""
    await anyio.sleep(first)
    while True:
        try:
            if meanings.here():
                embedder = await meanings.embedder()
                await store.meaning.read(embedder=embedder, seconds=EMBED_SECONDS, share=EMBED_SHARE)
                await store.knowledge.embed(embedder, seconds=EMBED_SECONDS, share=EMBED_SHARE)
        except StoreError as error:  # answers without embeddings are also stored safely
            log.warning("could not embed answers: %s", error)
        except MootError as error:
            log.warning("semantic search is not available: %s", error.advice())
            return
        await anyio.sleep(again)
