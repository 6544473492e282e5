"""A SQLite file of another program, as it stood at one moment: a private copy is read, so neither stands in the other's way."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from moot.errors import UsageError

__all__ = ["SQLITE", "opened", "tables"]

SQLITE = b"SQLite format 3\x00"
"""How such a file begins."""
_BESIDE = ("", "-wal", "-journal")
_TRIES = 20
_PAUSE = 0.05


@contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to a copy, whose rows are found by name; gone with the block.

    Raises UsageError for what can't be read or is damaged, in the block too.
    """
    with tempfile.TemporaryDirectory(prefix="moot-") as folder:
        try:
            copy = _copied(path, Path(folder))
        except OSError as error:
            raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA query_only = ON")
                yield connection
        except sqlite3.Error as error:
            raise UsageError(f"{str(path)!r} can't be read as a database: {error}") from error


def tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Each table or view → its columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    return {name: frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))) for name in names}


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
