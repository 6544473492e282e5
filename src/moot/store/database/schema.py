"""Creating and upgrading the database: under a lock, with a backup first, and atomically."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from moot.errors import StoreError, StoreTooNew
from moot.store.database.connection import APPLICATION_ID, FORGETS_WORDS, Connection, connect, sqlite
from moot.store.database.errors import FOREIGN_ERRORS, corrupt_error, translate_error, translated_errors
from moot.store.database.locks import FileLock, sync_folder
from moot.store.database.unchanged import read_unchanged
from moot.store.migrations import Migration, newest_schema, released


def prepare(path: Path, lock: FileLock, migrations: Sequence[Migration] | None = None) -> None:
    """Upgrade the database at `path` to the newest schema, creating it if needed.

    Raise StoreTooNew if a newer version of moot wrote the file, StoreCorrupt if it is not a moot database. Such files are not changed.
    """
    steps = released() if migrations is None else migrations
    if path.exists():
        if (version := _checked(path, len(steps))) == len(steps):
            return
        if not os.access(path.parent, os.W_OK):
            raise StoreError(
                f"{str(path)!r} was written by an older version of moot (schema {version}). It can't be upgraded: its folder is read-only.",
                fix="Make MOOT_HOME writable and try again, or use the older version of moot to read it.",
            )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(
            f"Cannot create the folder {str(path.parent)!r}: {error.strerror}.", fix="Set MOOT_HOME to a writable folder."
        ) from error
    with lock, translated_errors(path):
        if not path.exists():
            _create(path, [newest_schema()] if migrations is None else steps, len(steps))
        elif (version := _checked(path, len(steps))) < len(steps):
            with closing(connect(path, writing=True)) as connection:
                folder = path.parent / "backups"
                folder.mkdir(exist_ok=True, mode=0o700)
                stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
                copy = folder / f"{path.stem}-schema{version}-{stamp}.db"
                unfinished = copy.with_suffix(".part")
                unfinished.unlink(missing_ok=True)
                # copied by SQLite's backup function, because the file must not be read directly while it is open
                with closing(sqlite.connect(str(unfinished))) as target:
                    connection.backup(target)
                unfinished.rename(copy)
                sync_folder(folder)
                _apply(connection, steps[version:], len(steps))


def stored_version(path: Path) -> int:
    """Return the schema version of the database, without changing it; it can be newer than this moot.

    Raise StoreCorrupt if the file is not a moot database.
    """
    return _checked(path, sys.maxsize)


def version_of(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def quick_check(connection: Connection, limit: int) -> list[str]:
    """Return at most `limit` faults in the structure of the file: tables, indexes and pages."""
    try:
        return [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({int(limit)})") if row[0] != "ok"]
    except sqlite.DatabaseError as error:
        return [str(error)]


def _checked(path: Path, newest: int) -> int:
    if path.stat().st_size == 0:  # _create never leaves an empty file, so it was emptied later
        raise corrupt_error(path, "the file is empty")
    try:
        try:
            with closing(connect(path)) as connection:
                version, mark = _marks(connection)
        except sqlite.OperationalError as error:
            version, mark = read_unchanged(path, _marks, error)
    except FOREIGN_ERRORS as error:
        raise translate_error(error, path) from error
    if mark != APPLICATION_ID:
        raise corrupt_error(path, "it is the database of another program")
    if version > newest:
        raise StoreTooNew(
            f"{str(path)!r} was written by a newer version of moot (schema {version}, this version supports {newest}). It was not changed.",
            fix="Upgrade moot, or set MOOT_HOME to another folder.",
        )
    return version


def _marks(connection: Connection) -> tuple[int, int]:
    return version_of(connection), int(connection.execute("PRAGMA application_id").fetchone()[0])


def _create(path: Path, steps: Sequence[Migration], version: int) -> None:
    """Create a new database of that schema version; it appears under its name only once it is complete and durable."""
    orphan = path.with_name(f"{path.name}-wal")
    if orphan.exists():
        raise corrupt_error(path, f"it is missing, but its log {orphan.name!r} still exists")
    fresh = path.with_name(f"{path.name}.new")
    for ending in ("", "-journal", "-wal", "-shm"):  # files of a killed process
        fresh.with_name(f"{fresh.name}{ending}").unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    with closing(connect(fresh, writing=True)) as connection:
        _apply(connection, steps, version)
        # the rename moves the file without its log: closing checkpoints it too, but does not report failures
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StoreError(f"Another program uses {str(fresh)!r}.", fix="Try again.")
    fresh.rename(path)
    sync_folder(path.parent)


def _apply(connection: Connection, steps: Sequence[Migration], version: int) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    # a migration may drop and replace a referenced table, so the references are checked at the end
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            for statement in _statements(step.script):
                # without it, removed entries stay in the index, unused, until the next purge
                connection.execute(statement if FORGETS_WORDS else statement.replace(" contentless_delete = 1,", ""))
        if (dangling := connection.execute("PRAGMA foreign_key_check").fetchone()) is not None:
            raise sqlite.IntegrityError(f"a row of {dangling[0]} refers to a missing row of {dangling[2]}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {int(version)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite.complete_statement(statement):
            yield statement
            statement = ""
