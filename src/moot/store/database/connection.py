"""Choose the SQLite library of this process and open connections.

Two copies of SQLite in one process would drop each other's file locks, so all code uses `sqlite` from this module. SQLite 3.7.0 to 3.51.2
can lose commits when two connections write and checkpoint at the same time (the WAL-reset bug, fixed in 3.51.3:
https://sqlite.org/wal.html). With those versions, the store serializes commits and checkpoints itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, Protocol

if TYPE_CHECKING:
    import sqlite3 as sqlite
else:
    try:
        import pysqlite3.dbapi2 as sqlite
    except ImportError:
        import sqlite3 as sqlite


NAME: str = sqlite.__name__.partition(".")[0]
"""Name of the imported SQLite module: `sqlite3` or `pysqlite3`."""

VERSION: tuple[int, ...] = tuple(int(part) for part in sqlite.sqlite_version.split("."))


def checkpoints_path(database: Path) -> Path:
    """Return the path of the checkpoint database (the files kept for undo) that belongs to a store's database."""
    return database.with_name("checkpoints.db")


FORGETS_WORDS = VERSION >= (3, 43, 0)
"""True if FTS5 can remove an entry whose text is not stored (`contentless_delete`)."""


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """Return True if that version of SQLite has the WAL-reset bug."""
    return (3, 7, 0) <= version <= (3, 51, 2)


Connection = sqlite.Connection


class Queries(Protocol):
    """A connection or a transaction: anything that executes SQL."""

    @property
    def execute(self) -> Callable[..., sqlite.Cursor]: ...


_VALUES = (8, 64, 512)  # numbers of values per statement; few sizes, so that few statements are prepared


def select_in(queries: Queries, sql: LiteralString, values: Iterable[object], *before: object) -> Iterator[Any]:
    """Yield the rows of a query that ends with `IN`. The values are split over several statements.

    `before` contains the values of its earlier parameters.
    """
    left = list(values)
    while left:
        size = next((size for size in _VALUES if len(left) <= size), _VALUES[-1])
        some, left = left[:size], left[size:]
        padded = [*some, *[some[-1]] * (size - len(some))]
        yield from queries.execute(f"{sql} ({', '.join('?' * size)})", (*before, *padded)).fetchall()


APPLICATION_ID = 0x6D6F6F74
"""The application id in the file header (`moot` in ASCII), which identifies moot databases."""

_SECONDS_TO_WAIT = 30.0


def connect(path: Path, *, writing: bool = False, wait: float = _SECONDS_TO_WAIT, immutable: bool = False) -> Connection:
    """Open a connection in autocommit mode, for one thread at a time. It is read-only unless `writing` is set.

    With `immutable`, SQLite takes no locks and ignores the write-ahead log, so the file must not change while it is open.
    """
    mode = "rw" if writing else "ro&immutable=1" if immutable else "ro"
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
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # affects only new files, and files rewritten by VACUUM
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection
