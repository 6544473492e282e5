"""A search where only the whole store can say: it completes the index first, and knows what people call a conversation."""

from __future__ import annotations

import anyio

from moot.cli.references import find_in
from moot.config.settings import Settings
from moot.store import open_store
from moot.store.searching.finding import Asked
from moot.types.search import SearchPage


def searched(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    """A page of hits, for a command without an event loop. Raises UsageError, NotFound, StoreError."""
    return anyio.run(_searched, settings, query, asked, directory)


async def _searched(settings: Settings, query: str, asked: Asked, directory: str) -> SearchPage:
    store = await open_store(settings)
    try:
        within = asked.conversation
        if within is not None:
            within = (await find_in(store, settings.home / "state", within, directory)).id
        return await store.search.search(query, limit=asked.limit, cursor=asked.cursor, conversation=within, best=asked.best)
    finally:
        await store.close()
