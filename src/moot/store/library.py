"""The SQLite library of this process: chosen here, imported nowhere else.

Two libraries in one process would drop each other's file locks, so all code uses `sqlite` from this module. Versions 3.7.0 to 3.51.2 can
lose commits when two connections write and checkpoint at the same instant (the WAL-reset bug, fixed in 3.51.3:
https://sqlite.org/wal.html); with those versions, the store serializes commits and checkpoints itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3 as sqlite
else:
    try:
        import pysqlite3.dbapi2 as sqlite
    except ImportError:
        import sqlite3 as sqlite

__all__ = ["NAME", "VERSION", "has_wal_reset_bug", "sqlite"]

NAME: str = sqlite.__name__.partition(".")[0]
"""Name of the imported library."""

VERSION: tuple[int, ...] = tuple(int(part) for part in sqlite.sqlite_version.split("."))


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """Return True if that version of SQLite has the WAL-reset bug."""
    return (3, 7, 0) <= version <= (3, 51, 2)
