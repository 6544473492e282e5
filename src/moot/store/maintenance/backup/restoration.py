"""Restoring a home from a backup: unpacked and checked in a temporary folder, then moved into place. All functions block."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import IO

from moot.config.plugins.content import PROGRAMS
from moot.errors import Busy, StoreError, StoreTooNew, UsageError
from moot.store.database.connection import connect
from moot.store.database.errors import translated_errors
from moot.store.database.locks import FileLock, Presence
from moot.store.database.schema import prepare
from moot.store.maintenance.backup.archive import CHECKPOINTS, DATABASE, PLUGINS, read, remember
from moot.store.migrations import newest
from moot.types.crash import point
from moot.types.maintenance import Backup

_EXCHANGE = 2
_HERE = -100
_PIECE = 1 << 20
_ROOM = 64 << 20  # bytes that must stay free on the disk when a backup is unpacked


def restore(backup: Path, home: Path, *, replace: bool = False) -> tuple[Backup, Path | None]:
    """Restore a backup; return its description, and the path of the previous home if it was replaced.

    Raise UsageError if the home is not empty, Busy if it is in use, or StoreTooNew or StoreCorrupt if the backup can't be used. Nothing is
    changed in these cases.
    """
    home = home.expanduser().resolve()
    try:
        return _restored(backup.expanduser().absolute(), home, replace=replace)
    except OSError as error:
        raise StoreError(
            f"Cannot restore into {str(home)!r}: {error.strerror or error}. It was not changed.",
            fix=f"Make the folder {str(home.parent)!r} writable, or specify another home with --into.",
        ) from error


def _restored(backup: Path, home: Path, *, replace: bool) -> tuple[Backup, Path | None]:
    filled = home.exists() and any(home.iterdir())
    if filled and not replace:
        raise UsageError(
            f"The home folder {str(home)!r} is not empty.", fix="Choose another folder with --into, or set its data aside with --replace."
        )
    if filled:
        presence = Presence(home / "state" / "writers.lock")
        try:
            if presence.others():
                raise Busy(f"The home folder {str(home)!r} is in use.", fix="Stop all moot processes that use it, including `moot serve`.")
        finally:
            presence.leave()
    home.parent.mkdir(parents=True, exist_ok=True)
    for left in home.parent.glob(f".{home.name}.restoring-*"):  # folders of a killed process
        if (lock := _locked(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    staging = Path(tempfile.mkdtemp(prefix=f".{home.name}.restoring-", dir=home.parent))
    lock = _locked(staging)
    try:
        found = unpack(backup, staging)
        database = staging / "data" / DATABASE
        with translated_errors(database), closing(connect(database, writing=True)) as connection:
            remember(connection, found.path, "backup", found.made_at, found.packed)  # so that purges reach it
        point("restore.unpacked")
        return found, _moved(staging, home, filled=filled)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a folder and return its descriptor. Return None if it can't be opened, or if another process is restoring into it."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def unpack(backup: Path, home: Path) -> Backup:
    """Unpack a backup into an empty folder and upgrade the database. Errors are those of `restore`."""

    def take(name: str, stream: IO[bytes]) -> None:
        try:
            path = home / (f"data/{name}" if name in (DATABASE, CHECKPOINTS) or name.startswith("blobs/") else name)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path.open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                while piece := stream.read(_PIECE):
                    if file.tell() == 0 and name.startswith(f"{PLUGINS}/") and piece.startswith(PROGRAMS):
                        os.fchmod(file.fileno(), 0o700)
                    found = os.statvfs(path.parent)
                    if found.f_bavail * found.f_frsize < _ROOM:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # must not be mistaken for an error in reading the backup
            raise StoreError(f"Cannot unpack {name!r} into {str(home)!r}: {error.strerror or error}. Nothing was changed.") from error

    found = read(backup, take)
    if found.schema > newest():
        raise StoreTooNew(
            f"{str(backup)!r} has a database from a newer version of moot (schema {found.schema}, this version supports {newest()}).",
            fix="Upgrade moot.",
        )
    database = home / "data" / DATABASE
    prepare(database, FileLock(home / "state" / "migrate.lock"))
    for copy in (home / "data" / "backups").glob("*.db"):  # not needed: the backup itself is the copy
        copy.unlink()
    return found


def _moved(staging: Path, home: Path, *, filled: bool) -> Path | None:
    """Move the folder into place in one step; return the path of the previous home, if any."""
    if not filled:
        staging.rename(home)  # an empty folder may exist there
        return None
    aside = home.with_name(f"{home.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    _exchange(staging, home)
    point("restore.exchanged")
    staging.rename(aside)
    return aside


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders, atomically if the system supports it."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is not None and renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return
    between = other.with_name(f".{other.name}.between-{os.getpid()}")
    other.rename(between)
    one.rename(other)
    between.rename(one)
