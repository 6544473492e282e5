"""Reading a database on a full or read-only disk, where SQLite can't create the index of the write-ahead log that connections share.

If there is no log, the database file contains all data. It is read without locks, and the result is used only if the file has not changed
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from moot.store.database.connection import Connection, connect, sqlite

T = TypeVar("T")

_TRIES = 3
_INDEX = 32 << 10
"""Size in bytes of the index while a connection uses the database. Then the file is not opened here: closing it could drop its locks."""
_REFUSED = frozenset((8, 10, 14))  # SQLITE_READONLY, SQLITE_IOERR and SQLITE_CANTOPEN


def read_unchanged(path: Path, work: Callable[[Connection], T], error: sqlite.OperationalError) -> T:
    """Run `work` on a snapshot of the file and return its result. `error` is the error that opening it normally raised.

    Raise `error` if there is a log that must be read too, or if another process keeps changing the file.
    """
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _REFUSED:
        raise error
    for _ in range(_TRIES):
        before = _state(path)
        if before is None:
            raise error
        try:
            with closing(connect(path, immutable=True)) as connection:
                connection.execute("BEGIN")
                result = work(connection)
        except Exception:
            if _state(path) == before:
                raise
        else:
            if _state(path) == before:
                return result
    raise error


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return values that change with the file's content; None if the file is missing or has a log or open connections."""
    try:
        if _size(path.with_name(f"{path.name}-wal")) or _size(path.with_name(f"{path.name}-shm")) >= _INDEX:
            return None
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
