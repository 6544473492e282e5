"""Searches that need the full store, in order to complete the index, resolve a conversation reference, or search by meaning."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
from anyio import to_thread

from moot.cli.console.lines import Lines, Progress
from moot.cli.console.output import Output
from moot.cli.context.engine import connected, find_conversation
from moot.cli.context.references import find_in
from moot.config.settings import Settings
from moot.engine import Engine
from moot.plugins.registry import attribute
from moot.store import open_store
from moot.store.search.matches import SearchOptions
from moot.types.search import Embedder, SearchPage, SemanticQuery
from moot.types.store import Store

_UPDATE = 1.0
"""Seconds between progress updates."""
_YIELD = 0.05
"""Number of seconds to wait so that other processes can embed answers too."""


async def find_by_meaning(settings: Settings, query: str, asked: SearchOptions, directory: str, wait: float, output: Lines) -> SearchPage:
    """Embed new answers for at most `wait` seconds, then return the answers closest in meaning to the query.

    Raise the same errors as `find_messages`, and UsageError if the embedding model is not installed.
    """
    embedder: Embedder = await to_thread.run_sync(attribute("moot.providers.embedding:load_embedder"), settings.home)
    async with await open_store(settings) as store:
        within = await _conversation(store, settings, asked, directory)
        await _read(store, embedder, time.monotonic() + wait, output)
        return await store.meaning.search(SemanticQuery(query, asked.limit, within), embedder=embedder, wait=0)


async def _read(store: Store, embedder: Embedder, until: float, output: Lines) -> None:
    with Progress(output) as progress:
        await store.search.index(seconds=until - time.monotonic())
        while (left := until - time.monotonic()) > 0:
            done, total = await store.meaning.read(embedder=embedder, seconds=min(left, _UPDATE))
            if done >= total:
                break
            progress.show(f"embedding answers: {done:,} of {total:,}")
            await anyio.sleep(_YIELD)


async def find_messages(settings: Settings, query: str, asked: SearchOptions, directory: str) -> SearchPage:
    """Return a page of search results.

    Raise UsageError if the query is invalid, NotFound if the conversation doesn't exist, and StoreError if the database can't be read.
    """
    async with await open_store(settings) as store:
        within = await _conversation(store, settings, asked, directory)
        return await store.search.search(
            query, limit=asked.limit, cursor=asked.cursor, conversation=within, best=asked.best, context=asked.context
        )


async def find_on_server(query: str, asked: SearchOptions, meaning: bool, output: Output) -> tuple[SearchPage, Path]:
    """Search on the command line's server. Also return the folder for list numbers. Raise HostError if the server can't be reached."""
    async with connected(output) as engine:
        assert not isinstance(engine, Engine)
        reference = asked.conversation
        within = None if reference is None else (await find_conversation(engine, reference, "")).id
        if meaning:
            return await engine.search_meaning(query, asked.limit, within), engine.state
        page = await engine.store.search.search(
            query, limit=asked.limit, cursor=asked.cursor, conversation=within, best=asked.best, context=asked.context
        )
        return page, engine.state


async def _conversation(store: Store, settings: Settings, asked: SearchOptions, directory: str) -> str | None:
    """Return the id of the conversation that `asked` refers to, or None if it refers to none."""
    reference = asked.conversation
    return None if reference is None else (await find_in(store, settings.home / "state", reference, directory)).id
