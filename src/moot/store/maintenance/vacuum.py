"""Removing deleted data from the database file: from free pages, gaps in pages, the full-text index and the write-ahead log.

Merging the full-text indexes into one segment drops the words of deleted texts. VACUUM rewrites every page from the existing rows, and a
truncating checkpoint empties the write-ahead log. During VACUUM no one else can write; readers are not disturbed.

There is no incremental way: even with `secure_delete`, text of deleted rows stays in gaps of pages from which rows were moved, and
returning free pages leaves such gaps unchanged. Of 2,700 rows deleted or changed at random, the text of 6 to 14 stayed; without
`secure_delete`, the text of 1,600.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from moot.errors import MootError, StoreFull
from moot.store.database.connection import Connection, connect
from moot.store.database.locks import SCRUBBING, FileLock
from moot.store.database.reader import Reader
from moot.store.database.writer import Writer
from moot.store.search.indexer import optimize
from moot.types.maintenance import ReportProgress

T = TypeVar("T")

_RATE = 100_000_000  # approximate speed in bytes per second
_INTERVAL = 0.25  # seconds between progress messages during a long step


async def rewrite_database(writer: Writer, reader: Reader, path: Path, tell: ReportProgress, *, unindexed: bool = False) -> tuple[int, int]:
    """Rewrite the database and return its size before and after. Raise StoreFull if memory or disk space is low."""
    size = await reader.read(_size)
    lock = FileLock(path.parent.parent / "state" / SCRUBBING)
    seconds = 1 + size // _RATE
    wait = f"{seconds:,} {'second' if seconds == 1 else 'seconds'}"
    words = f"Rewriting the database ({size / 1e6:,.0f} MB); other writers wait for about {wait}"
    return await _with_progress(tell, words, lambda: writer.run_outside_transaction(partial(_scrub, path, lock, unindexed)))


async def empty_log(writer: Writer, path: Path, tell: ReportProgress, patience: float) -> bool:
    """Empty the write-ahead log and return True, or False if a reader needs an old state for more than `patience` seconds."""

    async def work() -> bool:
        await to_thread.run_sync(_checkpoint, path, patience)  # empty most of the log while others can write
        return await writer.run_outside_transaction(partial(_truncate, patience))

    return await _with_progress(tell, "Emptying the write-ahead log", work)


async def _with_progress(tell: ReportProgress, words: str, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `work`. Repeat the progress message while it runs, because a listener may show only some messages."""
    failure: MootError | None = None
    result: list[T] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_repeat, tell, words)
        try:
            result.append(await work())
        except MootError as error:  # a task group would wrap the exception
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result[0]


async def _repeat(tell: ReportProgress, words: str) -> None:
    while True:
        tell(words)
        await anyio.sleep(_INTERVAL)


def _size(connection: Connection) -> int:
    return int(connection.execute("PRAGMA page_count").fetchone()[0]) * int(connection.execute("PRAGMA page_size").fetchone()[0])


def _scrub(path: Path, lock: FileLock, unindexed: bool, connection: Connection) -> tuple[int, int]:
    before = _size(connection)
    _check_room(path, before)
    with lock:  # tells other writers to wait as long as it takes
        if unindexed:
            optimize(connection)
        connection.execute("VACUUM")
    return before, _size(connection)


def _checkpoint(path: Path, patience: float) -> None:
    until = time.monotonic() + patience
    with closing(connect(path, writing=True)) as connection:
        while connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] and time.monotonic() < until:
            time.sleep(0.05)  # another checkpoint is running


def _truncate(patience: float, connection: Connection) -> bool:
    connection.execute("PRAGMA busy_timeout = 100")
    until = time.monotonic() + patience
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _check_room(path: Path, size: int) -> None:
    """Raise StoreFull if memory or disk space is low.

    SQLite builds the new file in memory, then writes all of it to the write-ahead log.
    """
    found = os.statvfs(path.parent)
    room = found.f_bavail * found.f_frsize
    memory = _memory()
    if room < size + (64 << 20):
        raise StoreFull(
            f"Rewriting the database needs {size:,} bytes of disk space, but only {room:,} are free. The rewrite was postponed.",
            fix="Free space on that disk, then run `moot purge --finish`.",
        )
    if memory and memory < size:
        raise StoreFull(
            f"Rewriting the database needs {size:,} bytes of memory, but only {memory:,} are free. The rewrite was postponed.",
            fix="Close other programs, then run `moot purge --finish`.",
        )


def _memory() -> int:
    """Return the memory available to programs in bytes; 0 = unknown."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 0
    return 0
