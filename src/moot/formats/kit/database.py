"""Access to other programs' SQLite databases. A private copy is read, so that moot and the other program don't block each other."""

from __future__ import annotations

import base64
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from moot.errors import UsageError
from moot.types.canonical import JsonObject, dumps
from moot.types.format import ImportedConversation, ImportedRecord

Connection: TypeAlias = sqlite3.Connection
Schema: TypeAlias = Mapping[str, Set[str]]
"""Table name → names of the columns that the table must have."""
SQLITE = b"SQLite format 3\x00"
"""Magic bytes of an SQLite database."""
_BESIDE = ("", "-wal", "-journal")
_TRIES = 20
_PAUSE = 0.05


@contextmanager
def open_copy(path: Path) -> Generator[sqlite3.Connection]:
    """Open a copy of the database for the duration of the block. Columns of rows are accessible by name. Symlinks are followed.

    Raise UsageError if the database can't be read, even if this is noticed only inside the block.
    """
    with tempfile.TemporaryDirectory(prefix="moot-") as folder:
        try:
            copy = _copied(path.resolve(), Path(folder))
        except OSError as error:
            raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = _text
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA query_only = ON")
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's own message about a damaged name may not be valid UTF-8
            raise UsageError(f"Can't read {str(path)!r} as a database: {error}") from error


@contextmanager
def open_own(path: Path, program: str, *schemas: Schema) -> Generator[sqlite3.Connection]:
    """Open a copy of a program's database, as `open_copy` does. Raise UsageError if the database has none of the schemas."""
    with open_copy(path) as connection:
        if not has_schema(tables(connection), *schemas):
            raise UsageError(f"{str(path)!r} is not a valid {program} database.")
        yield connection


def is_database(path: Path, head: bytes, *schemas: Schema) -> bool:
    """Return whether a file is a database with at least one of the schemas."""
    return has_schema(columns(path, head), *schemas)


def has_schema(found: Schema, *schemas: Schema) -> bool:
    """Return whether the database has all tables and columns of at least one of the schemas."""
    return any(all(names <= found.get(table, frozenset()) for table, names in schema.items()) for schema in schemas)


def tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Return all tables and views, each with its columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {name: frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))) for name in names}


def columns(path: Path, head: bytes) -> Mapping[str, frozenset[str]]:
    """Return the tables of a file with their columns, or nothing if it is not a readable database.

    The file is copied only if its tables are still in the write-ahead log.
    """
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
        with open_copy(path) as connection:
            return tables(connection)
    except (sqlite3.Error, UsageError, UnicodeDecodeError):
        return {}


def first_value(path: Path, query: str, *values: Any) -> str:
    """Return the first value of the first row as text, or an empty string if there is none. The database is not copied.

    Use this only to look up single rows, because another program may change the database at the same time.
    """
    # if there is no log, opening must not create one; if there is one, it contains the newest writes
    options = "mode=ro" if path.with_name(f"{path.name}-wal").is_file() else "mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True)) as connection:
        row = connection.execute(query, values).fetchone()
        value = row[0] if row is not None else ""
        return _text(value) if isinstance(value, bytes) else str(value if value is not None else "")
    return ""


def rows(connection: sqlite3.Connection, query: str, *values: Any) -> Iterator[sqlite3.Row | str]:
    """Yield the rows. If the database is damaged, the last item is a string that describes the problem."""
    try:
        yield from connection.execute(query, values)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield f"the remaining rows can't be read: {error}"


def readable_rows(connection: sqlite3.Connection, problems: list[str], query: str, *values: Any) -> Iterator[sqlite3.Row]:
    """Yield the readable rows. If the database is damaged, append a description of the problem to `problems`."""
    for row in rows(connection, query, *values):
        if isinstance(row, str):
            problems.append(row)
        else:
            yield row


def row_objects(connection: sqlite3.Connection, query: str, *values: Any) -> list[JsonObject]:
    """Return the readable rows as JSON."""
    return [row_object(row) for row in readable_rows(connection, [], query, *values)]


def conversations_in(
    connection: sqlite3.Connection, query: str, convert: Callable[[JsonObject, bytes], ImportedConversation]
) -> Iterator[ImportedConversation]:
    """Yield a conversation for each row. If the database is damaged, the last conversation contains only a record with the problem.

    If the id of a conversation can't be read, an id is derived from its row.
    """
    for row in rows(connection, query):
        if isinstance(row, str):
            yield ImportedConversation("damaged", (ImportedRecord(b"", problem=row),))
            continue
        raw = row_bytes(row)
        found = convert(row_object(row), raw)
        yield found if found.source_id else replace(found, source_id=f"row-{blake2b(raw, digest_size=16).hexdigest()}")


def row_object(row: sqlite3.Row) -> JsonObject:
    """Return a row as a JSON object. Binary values become `{"base64": …}`."""
    return {
        name: {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in zip(row.keys(), tuple(row), strict=True)
    }


def row_bytes(row: sqlite3.Row) -> bytes:
    """Return a row as one line of canonical JSON."""
    return dumps(row_object(row)) + b"\n"


def create_database(schema: str, inserts: Iterable[tuple[str, Iterable[tuple[Any, ...]]]]) -> bytes:
    """Return the bytes of a new database with a schema and rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        for statement, rows_ in inserts:
            connection.executemany(statement, rows_)
        connection.commit()
        return connection.serialize()


def _text(value: bytes) -> str:
    """Decode text, replacing invalid bytes so that one bad value does not make a table unreadable."""
    return value.decode("utf-8", "replace")


def _copied(path: Path, folder: Path) -> Path:
    """Copy the database and its log files in a consistent state. Raise OSError or UsageError on failure."""
    copy = folder / "copy.db"
    for _ in range(_TRIES):
        before = _state(path)
        for end in _BESIDE:
            file = path.with_name(path.name + end)
            target = copy.with_name(copy.name + end)
            target.unlink(missing_ok=True)
            if file.is_file() and not file.is_symlink():
                shutil.copyfile(file, target)
        if _state(path) == before:
            return copy
        time.sleep(_PAUSE)
    raise UsageError(f"{str(path)!r} is being written to continuously.", fix="Close the program that uses it, or try again later.")


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    found: list[tuple[int, int, int] | None] = []
    for end in _BESIDE:
        file = path.with_name(path.name + end)
        about = file.stat() if file.exists() else None
        found.append(None if about is None else (about.st_ino, about.st_size, about.st_mtime_ns))
    return found
