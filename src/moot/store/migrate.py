"""Makes the database, or brings an older one to the newest schema: under a lock, backed up first, all or nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from moot.errors import StoreError, StoreTooNew
from moot.store.connect import APPLICATION_ID, Connection, connect
from moot.store.faults import FOREIGN, corrupt, translated, translating
from moot.store.library import sqlite
from moot.store.locks import FileLock
from moot.store.migrations import Migration, released

__all__ = ["prepare", "version_of"]

_BESIDE = ("", "-journal", "-wal", "-shm")


def prepare(path: Path, lock: FileLock, migrations: Sequence[Migration] | None = None) -> None:
    """Returns once the file at `path` has the newest schema; does nothing when it has.

    Raises StoreTooNew for a file of a newer moot and StoreCorrupt for one that is no database of ours, neither of them touched.
    """
    steps = released() if migrations is None else migrations
    if path.exists() and _checked(path, len(steps)) == len(steps):
        return
    _make_folders(path)
    with lock, translating(path):
        if not path.exists():
            _create(path, steps)
        elif (version := _checked(path, len(steps))) < len(steps):
            _upgrade(path, version, steps)


def version_of(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make_folders(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(
            f"can't make the folder {str(path.parent)!r}: {error.strerror}", fix="set MOOT_HOME to a folder that can be written"
        ) from error


def _checked(path: Path, newest: int) -> int:
    """The version of an existing file, which must be one of ours and not from the future."""
    if path.stat().st_size == 0:  # ours are born whole (see _create), so somebody emptied it
        raise corrupt(path, "the file is empty")
    try:
        connection = connect(path)
        try:
            version, mark = version_of(connection), int(connection.execute("PRAGMA application_id").fetchone()[0])
        finally:
            connection.close()
    except FOREIGN as error:
        raise translated(error, path) from error
    if mark != APPLICATION_ID:
        raise corrupt(path, "it is some other program's database")
    if version > newest:
        raise StoreTooNew(
            f"{str(path)!r} was written by a newer moot (schema {version}, this one knows {newest}); it was left as it is",
            fix="upgrade moot, or set MOOT_HOME to another folder",
        )
    return version


def _create(path: Path, steps: Sequence[Migration]) -> None:
    """A new database appears under its name whole and sound, or not at all."""
    orphan = path.with_name(f"{path.name}-wal")
    if orphan.exists():
        raise corrupt(path, f"it is gone, but its log {orphan.name!r} is still there")
    fresh = path.with_name(f"{path.name}.new")
    for ending in _BESIDE:  # what a killed process left
        fresh.with_name(f"{fresh.name}{ending}").unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    connection = connect(fresh, writing=True)
    try:
        _apply(connection, 0, steps)
        # the rename takes the file without its log: closing folds the log in too, but says nothing when it can't
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StoreError(f"{str(fresh)!r} is in use by another program", fix="try again")
    finally:
        connection.close()
    fresh.rename(path)
    _sync_folder(path.parent)


def _upgrade(path: Path, version: int, steps: Sequence[Migration]) -> None:
    connection = connect(path, writing=True)
    try:
        _back_up(connection, path, version)
        _apply(connection, version, steps)
    finally:
        connection.close()


def _apply(connection: Connection, version: int, steps: Sequence[Migration]) -> None:
    """All steps that are due, in one transaction."""
    connection.execute("PRAGMA synchronous = FULL")
    # a table that others refer to is made anew by dropping it: what refers to what is looked at when all is done
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version:]:
            for statement in _statements(step.script):
                connection.execute(statement)
        if (dangling := connection.execute("PRAGMA foreign_key_check").fetchone()) is not None:
            raise sqlite.IntegrityError(f"a row of {dangling[0]} refers to one of {dangling[2]} that is not there")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
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


def _back_up(connection: Connection, path: Path, version: int) -> None:
    """A whole copy through the library's own backup: nobody may read the file itself while it is open."""
    folder = path.parent / "backups"
    folder.mkdir(exist_ok=True, mode=0o700)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    copy = folder / f"{path.stem}-schema{version}-{stamp}.db"
    unfinished = copy.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    target = sqlite.connect(str(unfinished))
    try:
        connection.backup(target)
    finally:
        target.close()
    unfinished.rename(copy)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
