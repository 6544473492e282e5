"""Full-text search over all conversations, and the indexer that fills it behind everybody's back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio

from moot.store.connect import Connection
from moot.store.events import Events
from moot.store.locks import FileLock
from moot.store.reader import Reader
from moot.store.searching.filling import Entry, Filler, pending
from moot.store.searching.finding import Asked, find, tally
from moot.store.searching.query import parse
from moot.store.unindexing import merge_some
from moot.store.writer import LONGEST, Writer
from moot.types.search import SearchPage

__all__ = ["FullText"]

_LOOK_AGAIN = 0.02
_BULK = 1.0
"""Seconds of a transaction where nobody waits for another: the index then has fewer pieces to merge."""
_MUCH, _SHARE = 2000, 10
"""Messages taken up since the index was in one piece, and one in how many of all, with which it is worth to bring it there again."""


class FullText:
    """`Search` on SQLite's FTS5."""

    def __init__(self, writer: Writer, reader: Reader, lock: FileLock, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._lock = lock
        self._owner = owner
        self._events = Events()
        self._filler = Filler()
        self._fresh = 0
        """Messages taken up since the index was brought into one piece."""

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

    async def index(self, *, seconds: float = 30.0, bulk: bool = False, told: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        if await self._reader.call(lambda: self._lock.take(wait=False)):
            try:
                self._filler.forget()
                until = time.monotonic() + seconds
                await self._fill(until, bulk, told)
                await self._merge(until)
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

    async def _fill(self, until: float, bulk: bool, told: Callable[[int, int], None] | None) -> None:
        """Indexes what there is; while some is written, what comes next is read."""
        entries = await self._pending((), bulk)
        while entries and time.monotonic() < until:
            following: list[Entry] = []
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read_on, entries, following, bulk)
                    await self._put(entries, until, bulk)
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from errors  # the store's own error, which the caller knows
            if told is not None:
                told(*await self._reader.read(self._tally))
            entries = following

    async def _read_on(self, besides: Sequence[Entry], following: list[Entry], bulk: bool) -> None:
        following.extend(await self._pending(besides, bulk))

    async def _pending(self, besides: Sequence[Entry], bulk: bool) -> list[Entry]:
        work = partial(pending, events=self._events, besides=besides, known=self._filler.known, bulk=bulk)
        return await self._reader.read(work)

    async def _put(self, entries: Sequence[Entry], until: float, bulk: bool) -> None:
        """Puts them into the index in short transactions; in bulk in longer ones as long as no other process writes."""
        while entries and time.monotonic() < until:
            began, others = time.monotonic(), self._writer.others()
            count = await self._writer.write(partial(self._filler.fill, entries, _BULK if bulk and not others else LONGEST / 2))
            self._filler.filled(entries[:count])
            self._fresh += count
            entries = entries[count:]
            if others:  # as long as it took: others want to write too
                await anyio.sleep(time.monotonic() - began)

    async def _merge(self, until: float) -> None:
        """Brings the index into one piece behind much that was taken up: a word is looked for in each of them, which takes its time."""
        if self._fresh < _MUCH or self._fresh * _SHARE < (await self._reader.read(self._tally))[0]:
            return
        while time.monotonic() < until:
            began, others = time.monotonic(), self._writer.others()
            if not await self._writer.write(partial(merge_some, True)):
                self._fresh = 0
                return
            if others:
                await anyio.sleep(time.monotonic() - began)

    def _tally(self, connection: Connection) -> tuple[int, int]:
        return tally(connection, self._owner)
