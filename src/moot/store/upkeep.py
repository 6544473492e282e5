"""Storage maintenance: one process at a time seals old events and returns free pages, in small steps."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from moot.errors import StoreCorrupt
from moot.store import lookup, segments
from moot.store.connect import Connection
from moot.store.locks import FileLock
from moot.store.reader import Reader
from moot.store.scrubbing import empty_log, rewrite_database
from moot.store.sealing import Due, due, put, stretch
from moot.store.segments import said
from moot.store.sizes import measure
from moot.store.transaction import Transaction
from moot.store.writer import Writer
from moot.types.backup import Tell
from moot.types.ids import Clock
from moot.types.upkeep import Sealed, Sizes

__all__ = ["StoreUpkeep"]

_PAGES = 256
"""Pages returned in one transaction: 1 MiB, which takes a few milliseconds."""
_REST = 0.2
"""Seconds to pause after a segment of many events when there is no hurry; reading and replacing them takes a twentieth of that."""
_MANY = 512
_PATIENCE = 20.0
"""Seconds to wait for readers of an old state."""

log = logging.getLogger("moot.store")


class StoreUpkeep:
    """`Upkeep` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader, path: Path, lock: FileLock, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._path = path
        self._lock = lock
        self._clock = clock

    async def seal(
        self, *, quiet: float = 0.0, seconds: float | None = None, share: float = 1.0, conversation: str | None = None, dry: bool = False
    ) -> AsyncGenerator[Sealed, None]:
        only = None if conversation is None else await self._reader.read(partial(lookup.number, id=conversation))
        before, until = self._clock.now() - int(quiet * 1e6), None if seconds is None else time.monotonic() + seconds
        if not dry and not await self._reader.call(partial(self._lock.take, wait=False)):
            return
        try:
            done, last = Sealed(), 0
            while found := await self._reader.read(partial(due, before=before, after=last, only=only)):
                for what in found:
                    last = what.conversation
                    done = Sealed(done.conversations + 1, done.events + (what.events if dry else 0), done.before, done.after)
                    while not dry and (step := await self._step(what, share)) is not None:
                        done = Sealed(done.conversations, done.events + step.events, done.before + step.before, done.after + step.after)
                        yield done
                        if until is not None and time.monotonic() > until:
                            return
                        await anyio.sleep(_REST * min(step.events / _MANY, 1.0) if share < 1 else 0)
            yield done
        finally:
            if not dry:
                self._lock.release()

    async def _step(self, what: Due, share: float) -> Sealed | None:
        """Seal one segment; return None if there is none to seal."""
        made = await self._reader.read(partial(stretch, what=what))
        if made is None:
            return None
        try:
            # abandoned on cancel because it changes nothing: an exiting process doesn't wait for it
            packed = await to_thread.run_sync(segments.packed, made.rows, share, abandon_on_cancel=True)
        except StoreCorrupt as error:
            log.error("events of conversation number %d were not sealed: %s", what.conversation, error)
            return None
        if not await self._writer.write(partial(put, made, packed)):
            return None  # another process was faster or redacted some rows: the next pass finds the rest
        before = sum(said(row) for row in made.rows if row.seq > made.sealed_through)
        return Sealed(0, made.last - made.sealed_through, before, len(packed.data) + len(packed.frames) - made.merged_size)

    async def give_back(self, *, keep: int = 0, share: float = 1.0) -> AsyncGenerator[int, None]:
        left = await self._reader.read(_free)
        while left > keep:
            started = time.monotonic()
            await self._writer.write(_give_back)
            before, left = left, await self._reader.read(_free)
            if left >= before:
                return
            yield max(left - keep, 0)
            await anyio.sleep((time.monotonic() - started) * (1 / share - 1))

    async def rewrite(self, tell: Tell) -> None:
        await rewrite_database(self._writer, self._reader, self._path, tell)
        if not await empty_log(self._writer, self._path, tell, _PATIENCE):
            log.warning("the write-ahead log will be emptied once no reader needs an old state")

    async def sizes(self, *, largest: int = 10, owner: str | None = None) -> Sizes:
        return await measure(self._reader, largest, owner)


def _free(connection: Connection) -> int:
    """Return the size of the free pages that can be returned to the system."""
    pages, size, mode = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_size", "auto_vacuum"))
    return pages * size if mode else 0


def _give_back(transaction: Transaction) -> None:
    transaction.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
