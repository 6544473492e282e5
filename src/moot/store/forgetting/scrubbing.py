"""Cleaning the file itself: what was deleted lies on in free pages, in gaps of pages, in the index's own tables and in the log of writes.

Merging the full-text indexes into one piece drops their words of what is gone. VACUUM writes every page anew from what is still there,
and a checkpoint that truncates empties the write-ahead log. While that lasts nobody else can write; readers are not disturbed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from moot.errors import StoreFull
from moot.store.connect import Connection
from moot.store.locks import FileLock
from moot.store.unindexing import optimize

__all__ = ["scrub", "size_of", "truncated"]


def size_of(connection: Connection) -> int:
    """Bytes of the database."""
    return int(connection.execute("PRAGMA page_count").fetchone()[0]) * int(connection.execute("PRAGMA page_size").fetchone()[0])


def scrub(path: Path, lock: FileLock, unindexed: bool, connection: Connection) -> tuple[int, int]:
    """Bytes of the database before and after. Raises StoreFull when there is no room for it."""
    before = size_of(connection)
    _check_room(path, before)
    with lock:  # others wait for as long as it takes
        if unindexed:
            optimize(connection)
        connection.execute("VACUUM")
    return before, size_of(connection)


def truncated(patience: float, connection: Connection) -> bool:
    """Whether the write-ahead log is empty now; somebody who reads an old state is waited for so many seconds."""
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
