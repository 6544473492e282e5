"""Full-text search over all conversations, and the indexer that fills it behind everybody's back."""

from __future__ import annotations

import time
from functools import partial

import anyio

from moot.store.connect import Connection
from moot.store.events import Events
from moot.store.locks import FileLock
from moot.store.reader import Reader
from moot.store.searching.filling import Filler, is_pending, pending
from moot.store.searching.finding import Asked, find, tally
from moot.store.searching.query import parse
from moot.store.writer import LONGEST, Writer
from moot.types.search import SearchPage

__all__ = ["FullText"]

_LOOK_AGAIN = 0.02


class FullText:
    """`Search` on SQLite's FTS5."""

    def __init__(self, writer: Writer, reader: Reader, lock: FileLock, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._lock = lock
        self._owner = owner
        self._events = Events()
        self._filler = Filler()

    async def search(
        self,
        query: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        conversation: str | None = None,
        but_not: str | None = None,
        best: bool = False,
        wait: float = 2.0,
    ) -> SearchPage:
        parsed = parse(query, now=int(time.time() * 1000))
        asked = Asked(limit, cursor, conversation, but_not, best, self._owner)

        def work(connection: Connection) -> SearchPage:
            return find(connection, parsed, asked)

        page = await self._reader.read(work)
        if page.done < page.total and wait > 0:
            await self._caught_up(wait)
            page = await self._reader.read(work)
        return page

    async def index(self, *, seconds: float = 30.0) -> tuple[int, int]:
        if await self._reader.call(lambda: self._lock.take(wait=False)):
            try:
                self._filler.forget()
                until = time.monotonic() + seconds
                while time.monotonic() < until and await self._step(until):
                    pass
            finally:
                self._lock.release()
        return await self._reader.read(self._tally)

    async def _caught_up(self, seconds: float) -> None:
        """Indexes what is missing, or waits while another process does."""
        until = time.monotonic() + seconds
        while True:
            done, total = await self.index(seconds=until - time.monotonic())
            if done >= total or time.monotonic() + _LOOK_AGAIN > until:
                return
            await anyio.sleep(_LOOK_AGAIN)

    async def _step(self, until: float) -> bool:
        """Indexes some messages in short transactions; False when there are none left."""
        entries = await self._reader.read(partial(pending, events=self._events))
        while entries and time.monotonic() < until:
            began = time.monotonic()
            count = await self._writer.write(partial(self._filler.fill, entries, LONGEST / 2))
            self._filler.filled(entries[:count])
            entries = entries[count:]
            if self._writer.others():  # as long as it took: others want to write too
                await anyio.sleep(time.monotonic() - began)
        return await self._reader.read(is_pending)

    def _tally(self, connection: Connection) -> tuple[int, int]:
        return tally(connection, self._owner)
