"""A search where only the whole store can say: it completes the index first, and knows what people call a conversation."""

from __future__ import annotations

import time

import anyio
from anyio import to_thread

from moot.cli.lines import Lines
from moot.cli.progress import Progress
from moot.cli.references import find_in
from moot.config.settings import Settings
from moot.plugins.registry import attribute
from moot.store import open_store
from moot.store.searching.finding import Asked
from moot.types.meaning import Embedder, Meant
from moot.types.search import SearchPage
from moot.types.store import Store

_TOLD = 1.0
"""Seconds of reading between two words about it."""
_TURN = 0.05
"""Seconds for another process that wants to read too, or does already."""


def searched(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    """A page of hits, for a command without an event loop. Raises UsageError, NotFound, StoreError."""
    return anyio.run(_searched, settings, query, asked, directory)


def meant(settings: Settings, query: str, asked: Asked, directory: str, wait: float, output: Lines) -> SearchPage:
    """The answers nearest to what the query means; first reads what was not read yet, for at most `wait` seconds.

    Raises as `searched`, and UsageError where the model for it is not here.
    """
    return anyio.run(_meant, settings, query, asked, directory, wait, output)


async def _meant(settings: Settings, query: str, asked: Asked, directory: str, wait: float, output: Lines) -> SearchPage:
    embedder: Embedder = await to_thread.run_sync(attribute("moot.providers.meaning.having:load"), settings.home)
    store = await open_store(settings)
    try:
        within = await _conversation(store, settings, asked, directory)
        await _read(store, embedder, time.monotonic() + wait, output)
        return await store.meaning.search(Meant(query, asked.limit, within), embedder=embedder, wait=0)
    finally:
        await store.close()


async def _read(store: Store, embedder: Embedder, until: float, output: Lines) -> None:
    progress = Progress(output)
    try:
        await store.search.index(seconds=until - time.monotonic())
        while (left := until - time.monotonic()) > 0:
            done, total = await store.meaning.read(embedder=embedder, seconds=min(left, _TOLD))
            if done >= total:
                break
            progress.show(f"reading answers: {done:,} of {total:,}")
            await anyio.sleep(_TURN)
    finally:
        progress.close()


async def _searched(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    store = await open_store(settings)
    try:
        within = await _conversation(store, settings, asked, directory)
        return await store.search.search(query, limit=asked.limit, cursor=asked.cursor, conversation=within, best=asked.best)
    finally:
        await store.close()


async def _conversation(store: Store, settings: Settings, asked: Asked, directory: str) -> str | None:
    """The id of what a person calls so; None for none."""
    called = asked.conversation
    return None if called is None else (await find_in(store, settings.home / "state", called, directory)).id
