"""Opening SQLite connections with the settings that each one needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from moot.store.library import sqlite

__all__ = ["APPLICATION_ID", "Connection", "Queries", "connect"]

Connection = sqlite.Connection


class Queries(Protocol):
    """A connection or a transaction: anything that executes SQL."""

    @property
    def execute(self) -> Callable[..., sqlite.Cursor]: ...


APPLICATION_ID = 0x6D6F6F74
"""`moot`: the application id in the file header that identifies our databases."""

_SECONDS_TO_WAIT = 30.0


def connect(path: Path, *, writing: bool = False, wait: float = _SECONDS_TO_WAIT) -> Connection:
    """Open a connection in autocommit mode, for one thread at a time; read-only unless `writing`."""
    mode = "rw" if writing else "ro"
    # the timeout must be set first: switching the journal mode needs a lock that another process may hold for a moment
    connection = sqlite.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        cached_statements=256,
        check_same_thread=False,
    )
    try:
        if writing:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # affects only new files, and those rewritten as a whole
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection
