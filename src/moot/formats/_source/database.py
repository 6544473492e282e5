"""A SQLite file of another program, as it stood at one moment: a private copy is read, so neither stands in the other's way."""

from __future__ import annotations

import base64
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject, dumps

__all__ = ["SQLITE", "Connection", "Row", "columns", "made", "object_of", "opened", "raw_of", "readable", "rows", "tables"]

Connection: TypeAlias = sqlite3.Connection
Row: TypeAlias = sqlite3.Row
SQLITE = b"SQLite format 3\x00"
"""How such a file begins."""
_BESIDE = ("", "-wal", "-journal")
_TRIES = 20
_PAUSE = 0.05


@contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to a copy, whose rows are found by name; gone with the block. A link is what it leads to: it was named.

    Raises UsageError for what can't be read or is damaged, in the block too.
    """
    with tempfile.TemporaryDirectory(prefix="moot-") as folder:
        try:
            copy = _copied(path.resolve(), Path(folder))
        except OSError as error:
            raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = _text
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA query_only = ON")
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # its own words about a damaged name may be no text
            raise UsageError(f"{str(path)!r} can't be read as a database: {error}") from error


def tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Each table or view → its columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {name: frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))) for name in names}


def columns(path: Path, head: bytes) -> Mapping[str, frozenset[str]]:
    """`tables` of a file, for looking whose it is; empty when it can't be said. It is copied only when what it holds lies beside it yet."""
    if not head.startswith(SQLITE):
        return {}
    path = path.resolve()
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA trusted_schema = OFF")
            found = tables(connection)
        if found or not path.with_name(path.name + "-wal").is_file():
            return found
        with opened(path) as connection:
            return tables(connection)
    except (sqlite3.Error, UsageError, UnicodeDecodeError):
        return {}


def rows(connection: sqlite3.Connection, query: str, *values: Any) -> Iterator[sqlite3.Row | str]:
    """The rows, and what is wrong, as the last, where the file is damaged behind them."""
    try:
        yield from connection.execute(query, values)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield f"the rest of the rows can't be read: {error}"


def readable(connection: sqlite3.Connection, problems: list[str], query: str, *values: Any) -> Iterator[sqlite3.Row]:
    """The rows that can be read; what is wrong with those behind them goes to the problems."""
    for row in rows(connection, query, *values):
        if isinstance(row, str):
            problems.append(row)
        else:
            yield row


def object_of(row: sqlite3.Row) -> JsonObject:
    """A row as JSON; bytes as `{"base64": …}`."""
    return {name: _json(value) for name, value in zip(row.keys(), tuple(row), strict=True)}


def raw_of(row: sqlite3.Row) -> bytes:
    """A row as the bytes that it is kept as: one line of canonical JSON."""
    return dumps(object_of(row)) + b"\n"


def made(schema: str, inserts: Iterable[tuple[str, Iterable[tuple[Any, ...]]]]) -> bytes:
    """The bytes of a new database: its schema, and statements, each with its rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        for statement, given in inserts:
            connection.executemany(statement, given)
        connection.commit()
        return connection.serialize()


def _text(value: bytes) -> str:
    """Text as far as it is text: one bad value makes no table unreadable."""
    return value.decode("utf-8", "replace")


def _json(value: Any) -> Json:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _copied(path: Path, folder: Path) -> Path:
    """The file and what belongs to it, all of one moment. Raises OSError, UsageError."""
    copy = folder / "copy.db"
    for _ in range(_TRIES):
        before = _state(path)
        for end in _BESIDE:
            beside = path.with_name(path.name + end)
            target = copy.with_name(copy.name + end)
            target.unlink(missing_ok=True)
            if beside.is_file() and not beside.is_symlink():
                shutil.copyfile(beside, target)
        if _state(path) == before:
            return copy
        time.sleep(_PAUSE)
    raise UsageError(f"{str(path)!r} is written to without a pause", fix="close the program that owns it, or try again later")


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    found: list[tuple[int, int, int] | None] = []
    for end in _BESIDE:
        beside = path.with_name(path.name + end)
        about = beside.stat() if beside.exists() else None
        found.append(None if about is None else (about.st_ino, about.st_size, about.st_mtime_ns))
    return found
