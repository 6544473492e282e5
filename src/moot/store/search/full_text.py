"""Full-text search over all conversations, and indexing in the background."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio

from moot.errors import StoreError
from moot.store.database.connection import Connection
from moot.store.database.locks import FileLock
from moot.store.database.reader import Reader
from moot.store.database.writer import LONGEST, Writer
from moot.store.log.events import Events
from moot.store.search.indexer import Entry, Filler, merge_some, pending
from moot.store.search.matches import SearchOptions, find, tally
from moot.store.search.query import parse
from moot.types.search import SearchPage

log = logging.getLogger("moot.store")

_LOOK_AGAIN = 0.02
_BULK = 1.0  # duration of a transaction in seconds if nothing else waits: the index then has fewer segments to merge
_MUCH, _SHARE = 2000, 10  # merge the index after adding 2000 messages that are at least a tenth of all messages


class FullText:
    """The implementation of `Search` with SQLite\'s FTS5."""

    def __init__(self, writer: Writer, reader: Reader, lock: FileLock, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._lock = lock
        self._owner = owner
        self._events = Events()
        self._filler = Filler()
        self._fresh = 0
        """Number of messages indexed since the index was last merged."""

    async def search(
        self,
        query: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        conversation: str | None = None,
        exclude: str | None = None,
        best: bool = False,
        context: int = 0,
        wait: float = 2.0,
    ) -> SearchPage:
        parsed = parse(query, now=int(time.time() * 1000))
        asked = SearchOptions(limit, cursor, conversation, exclude, best, self._owner, context)

        def work(connection: Connection) -> SearchPage:
            return find(connection, parsed, asked)

        page = await self._reader.read(work)
        if page.done < page.total and wait > 0:
            try:
                await self._caught_up(wait)
            except StoreError as error:  # such as a full disk: what was indexed before can still be found
                log.warning("new messages can't be indexed: %s", error)
            page = await self._reader.read(work)
        return page

    async def index(
        self, *, seconds: float = 30.0, bulk: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> tuple[int, int]:
        if await self._reader.call(lambda: self._lock.take(wait=False)):
            try:
                self._filler.forget()
                until = time.monotonic() + seconds
                await self._fill(until, bulk, progress)
                await self._merge(until)
            finally:
                self._lock.release()
        return await self._reader.read(self._tally)

    async def _caught_up(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            done, total = await self.index(seconds=until - time.monotonic())
            if done >= total or time.monotonic() + _LOOK_AGAIN > until:
                return
            await anyio.sleep(_LOOK_AGAIN)

    async def _fill(self, until: float, bulk: bool, progress: Callable[[int, int], None] | None) -> None:
        """Index all pending messages; the next batch is read while the current one is written."""
        entries = await self._pending((), bulk)
        while entries and time.monotonic() < until:
            following: list[Entry] = []
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read_on, entries, following, bulk)
                    await self._put(entries, until, bulk)
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from errors  # raised as a store error, which callers handle
            if progress is not None:
                progress(*await self._reader.read(self._tally))
            entries = following

    async def _read_on(self, besides: Sequence[Entry], following: list[Entry], bulk: bool) -> None:
        following.extend(await self._pending(besides, bulk))

    async def _pending(self, besides: Sequence[Entry], bulk: bool) -> list[Entry]:
        work = partial(pending, events=self._events, besides=besides, known=self._filler.known, bulk=bulk)
        return await self._reader.read(work)

    async def _put(self, entries: Sequence[Entry], until: float, bulk: bool) -> None:
        """Index entries in short transactions. If `bulk` is set, use longer transactions as long as no other process writes."""
        while entries and time.monotonic() < until:
            started, others = time.monotonic(), self._writer.others()
            count = await self._writer.write(partial(self._filler.fill, entries, _BULK if bulk and not others else LONGEST / 2))
            self._filler.filled(entries[:count])
            self._fresh += count
            entries = entries[count:]
            if others:  # pause for as long as the transaction took, so that others can write
                await anyio.sleep(time.monotonic() - started)

    async def _merge(self, until: float) -> None:
        """Merge the index after many additions, because each query searches every segment of the index."""
        if self._fresh < _MUCH or self._fresh * _SHARE < (await self._reader.read(self._tally))[0]:
            return
        while time.monotonic() < until:
            started, others = time.monotonic(), self._writer.others()
            if not await self._writer.write(partial(merge_some, True)):
                self._fresh = 0
                return
            if others:
                await anyio.sleep(time.monotonic() - started)

    def _tally(self, connection: Connection) -> tuple[int, int]:
        return tally(connection, self._owner)
