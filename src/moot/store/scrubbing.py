"""Cleaning the file itself: what was deleted lies on in free pages, in gaps of pages, in the index's own tables and in the log of writes.

Merging the full-text indexes into one piece drops their words of what is gone. VACUUM writes every page anew from what is still there,
and a checkpoint that truncates empties the write-ahead log. While VACUUM lasts nobody else can write; readers are not disturbed.

There is no way in short steps: with `secure_delete` words of deleted rows still stay in gaps of pages that rows were moved out of before
(of 2,700 rows that were deleted or changed at random, 6 to 14; without it 1,600), and giving free pages back leaves such gaps as they are.
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
from moot.store.connect import Connection, connect
from moot.store.locks import SCRUBBING, FileLock
from moot.store.reader import Reader
from moot.store.unindexing import optimize
from moot.store.writer import Writer
from moot.types.backup import Tell

__all__ = ["emptied", "written_anew"]

T = TypeVar("T")

_RATE = 100_000_000
"""Bytes a second, about."""
_TOLD = 0.25
"""Seconds between two words about what takes long."""


async def written_anew(writer: Writer, reader: Reader, path: Path, tell: Tell, *, unindexed: bool = False) -> tuple[int, int]:
    """Bytes of the database before and after. Raises StoreFull when there is no room for it."""
    size = await reader.read(_size)
    lock = FileLock(path.parent.parent / "state" / SCRUBBING)
    words = f"writing the database anew, {size / 1e6:,.0f} MB: whoever writes waits, about {_seconds(size)}"
    return await _telling(tell, words, lambda: writer.alone(partial(_scrub, path, lock, unindexed)))


async def emptied(writer: Writer, path: Path, tell: Tell, patience: float) -> bool:
    """Whether the write-ahead log is empty now; somebody who reads an old state is waited for so many seconds."""

    async def work() -> bool:
        await to_thread.run_sync(_folded, path, patience)  # nearly all of it, while others write
        return await writer.alone(partial(_truncated, patience))

    return await _telling(tell, "emptying the log of writes", work)


async def _telling(tell: Tell, words: str, work: Callable[[], Awaitable[T]]) -> T:
    """What `work` returns; meanwhile it is said again and again, for who listens may take up only some of it."""
    failure: MootError | None = None
    result: list[T] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_again, tell, words)
        try:
            result.append(await work())
        except MootError as error:  # the group would wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result[0]


async def _again(tell: Tell, words: str) -> None:
    while True:
        tell(words)
        await anyio.sleep(_TOLD)


def _seconds(size: int) -> str:
    count = 1 + size // _RATE
    return f"{count:,} {'second' if count == 1 else 'seconds'}"


def _size(connection: Connection) -> int:
    return int(connection.execute("PRAGMA page_count").fetchone()[0]) * int(connection.execute("PRAGMA page_size").fetchone()[0])


def _scrub(path: Path, lock: FileLock, unindexed: bool, connection: Connection) -> tuple[int, int]:
    before = _size(connection)
    _check_room(path, before)
    with lock:  # others wait for as long as it takes
        if unindexed:
            optimize(connection)
        connection.execute("VACUUM")
    return before, _size(connection)


def _folded(path: Path, patience: float) -> None:
    until = time.monotonic() + patience
    with closing(connect(path, writing=True)) as connection:
        while connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] and time.monotonic() < until:
            time.sleep(0.05)  # somebody else is at it


def _truncated(patience: float, connection: Connection) -> bool:
    connection.execute("PRAGMA busy_timeout = 100")
    until = time.monotonic() + patience
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _check_room(path: Path, size: int) -> None:
    """The library makes the new file in memory, then writes it whole into the write-ahead log."""
    found = os.statvfs(path.parent)
    room = found.f_bavail * found.f_frsize
    memory = _memory()
    if room < size + (64 << 20):
        raise StoreFull(
            f"to write the database anew takes {size:,} bytes of disk, and {room:,} are free; it is cleaned as soon as there is room",
            fix="free space on that disk, then `moot purge --finish`",
        )
    if memory and memory < size:
        raise StoreFull(
            f"to write the database anew takes {size:,} bytes of memory, and {memory:,} are free; it is cleaned as soon as there is room",
            fix="end other programs, then `moot purge --finish`",
        )


def _memory() -> int:
    """Bytes that are free for programs; 0 = not known."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 0
    return 0
