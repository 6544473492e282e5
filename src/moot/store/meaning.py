"""Semantic search, and embedding new answers in the background."""

from __future__ import annotations

import time
from functools import partial

import anyio
from anyio import to_thread

from moot.store.locks import FileLock
from moot.store.reader import Reader
from moot.store.searching.finding import Asked
from moot.store.searching.nearest import embedded_count, nearest
from moot.store.searching.query import Query, parse
from moot.store.searching.reading import Unread, put, unread
from moot.store.writer import Writer
from moot.types.meaning import Embedder, Meant
from moot.types.search import Search, SearchPage

__all__ = ["StoredMeaning"]

_BATCH = 16
"""Number of answers embedded between two transactions: about a second."""
_LOOK_AGAIN = 0.1
_END = (1 << 63) - 1


class StoredMeaning:
    """`Meaning` on vectors stored with the full-text index."""

    def __init__(self, writer: Writer, reader: Reader, lock: FileLock, index: Search, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._lock = lock
        self._index = index
        self._owner = owner

    async def search(self, meant: Meant, *, embedder: Embedder, wait: float = 2.0) -> SearchPage:
        query = parse(meant.query, now=int(time.time() * 1000))
        asked = Asked(meant.limit, conversation=meant.conversation, owner=self._owner)
        await self._caught_up(embedder, wait)
        if not query.terms:
            done, total = await self._reader.read(partial(embedded_count, model=embedder.model, asked=asked))
            return SearchPage((), done, total)
        vector = await to_thread.run_sync(partial(embedder.embed, _words(meant.query, query), question=True))
        return await self._reader.read(partial(nearest, query=query, asked=asked, vector=vector, embedder=embedder))

    async def read(self, *, embedder: Embedder, seconds: float = 30.0, share: float = 1.0) -> tuple[int, int]:
        if await self._reader.call(lambda: self._lock.take(wait=False)):
            try:
                await self._read(embedder, time.monotonic() + seconds, share)
            finally:
                self._lock.release()
        return await self._reader.read(partial(embedded_count, model=embedder.model, asked=Asked(owner=self._owner)))

    async def _caught_up(self, embedder: Embedder, seconds: float) -> None:
        """Embed missing answers, or wait while another process does."""
        until = time.monotonic() + seconds
        await self._index.index(seconds=seconds)
        while True:
            done, total = await self.read(embedder=embedder, seconds=until - time.monotonic())
            if done >= total or time.monotonic() + _LOOK_AGAIN > until:
                return
            await anyio.sleep(_LOOK_AGAIN)

    async def _read(self, embedder: Embedder, until: float, share: float) -> None:
        """Embed answers, newest first; those that arrive meanwhile are left for the next time."""
        before = _END
        while time.monotonic() < until:
            some = await self._reader.read(partial(unread, model=embedder.model, before=before, limit=_BATCH))
            if not some:
                return
            before = some[-1].place
            await self._read_some(some, embedder, until, share)

    async def _read_some(self, some: list[Unread], embedder: Embedder, until: float, share: float) -> None:
        embedded: list[tuple[Unread, bytes]] = []
        for each in some:
            if embedded and time.monotonic() > until:
                break
            started = time.monotonic()
            vector = await to_thread.run_sync(partial(embedder.embed, each.text, question=False)) if each.text else b""
            embedded.append((each, vector))
            await anyio.sleep((time.monotonic() - started) * (1 / share - 1))
        await self._writer.write(partial(put, embedded, embedder.model))


def _words(typed: str, query: Query) -> str:
    """Return the words to embed: the query without operators."""
    plain = query == Query(query.terms)
    return typed if plain else " ".join(query.terms)
