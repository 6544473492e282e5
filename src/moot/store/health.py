"""The database report of `moot doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import LiteralString

from moot.store import library
from moot.store.connect import Connection
from moot.store.migrate import version_of
from moot.types.canonical import JsonObject

__all__ = ["report"]


def report(connection: Connection, path: Path, protected: bool) -> JsonObject:
    """Return library, version, protection, schema, integrity and sizes. Reads the whole file."""
    pages, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    return {
        "path": str(path),
        "library": library.NAME,
        "version": ".".join(map(str, library.VERSION)),
        "wal_reset_bug": library.has_wal_reset_bug(library.VERSION),
        "protection": "one process commits at a time" if protected else "not needed",
        "schema": version_of(connection),
        "integrity": _problems(connection) or "ok",
        "bytes": pages * size,
        **{f"{name}s": _count(connection, name) for name in ("conversation", "message", "run", "blob")},
    }


def _problems(connection: Connection) -> str:
    try:
        return "; ".join(str(row[0]) for row in connection.execute("PRAGMA quick_check(10)") if row[0] != "ok")
    except library.sqlite.DatabaseError as error:
        return str(error)


def _count(connection: Connection, table: LiteralString) -> int | None:
    """Return None if the table can't be read."""
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except library.sqlite.DatabaseError:
        return None
