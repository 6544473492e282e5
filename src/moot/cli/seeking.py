"""A search where only the whole store can say: it completes the index first, and knows what people call a conversation."""

from __future__ import annotations

import anyio
from anyio import to_thread

from moot.cli.references import find_in
from moot.config.settings import Settings
from moot.plugins.registry import attribute
from moot.store import open_store
from moot.store.searching.finding import Asked
from moot.types.meaning import Embedder, Meant
from moot.types.search import SearchPage
from moot.types.store import Store

_READING = 5.0
"""Seconds for answers that were not read yet, in a command that somebody waits for."""


def searched(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    """A page of hits, for a command without an event loop. Raises UsageError, NotFound, StoreError."""
    return anyio.run(_searched, settings, query, asked, directory)


def meant(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    """The answers nearest to what the query means. Raises as `searched`, and UsageError where the model for it is not here."""
    return anyio.run(_meant, settings, query, asked, directory)


async def _meant(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    embedder: Embedder = await to_thread.run_sync(attribute("moot.providers.meaning.having:load"), settings.home)
    store = await open_store(settings)
    try:
        within = await _conversation(store, settings, asked, directory)
        return await store.meaning.search(Meant(query, asked.limit, within), embedder=embedder, wait=_READING)
    finally:
        await store.close()


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
