"""Read-only access to the store without an event loop, for commands that must be fast, such as lists and shell completion."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from moot.store.database.connection import VERSION, Connection, connect, has_wal_reset_bug, sqlite
from moot.store.database.errors import translate_error
from moot.store.migrations import newest

WAIT = 0.25
"""Seconds to wait for a lock. After this time, the caller can open the whole store, or omit the data."""


@contextmanager
def open_snapshot(database: Path) -> Generator[Connection | None, None, None]:
    """Yield a connection to a read-only snapshot, or None if the file is missing, has an older schema or can't be read without the store.

    Raise StoreError if the block fails.
    """
    connection = _opened(database)
    try:
        yield connection
    except sqlite.Error as error:
        raise translate_error(error, database) from error
    finally:
        if connection is not None:
            connection.close()


def snapshot_of(home: Path) -> AbstractContextManager[Connection | None]:
    """Return `open_snapshot` for the database in a home."""
    return open_snapshot(home / "data" / "moot.db")


def newest_titles(home: Path, limit: int) -> list[tuple[str, str]]:
    """Return ids and titles of the newest conversations in a home; empty if there are none or they can't be read."""
    with snapshot_of(home) as connection:
        if connection is None:
            return []
        sql = "SELECT id, title FROM conversation WHERE deleted_at IS NULL AND archived_at IS NULL ORDER BY updated_at DESC LIMIT ?"
        return connection.execute(sql, (limit,)).fetchall()


def _opened(database: Path) -> Connection | None:
    if has_wal_reset_bug(VERSION) or not database.exists():  # with the WAL-reset bug, even closing needs the store's precautions
        return None
    try:
        connection = connect(database, wait=WAIT)
    except sqlite.Error:
        return None
    try:
        connection.execute("BEGIN")
        if connection.execute("PRAGMA user_version").fetchone()[0] == newest():
            return connection
    except sqlite.Error:
        pass  # the whole store will report the problem
    connection.close()
    return None
