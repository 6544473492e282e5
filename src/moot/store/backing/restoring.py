"""Makes a home of a backup: beside the place first, whole and judged, then in one move. All of it blocks."""

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

from moot.errors import Busy, StoreError, StoreTooNew, UsageError
from moot.store.backing.copies import remember
from moot.store.backing.manifest import DATABASE, read
from moot.store.connect import connect
from moot.store.faults import translating
from moot.store.locks import FileLock, Presence
from moot.store.migrate import prepare
from moot.store.migrations import newest
from moot.types.backup import Backup
from moot.types.crash import point

__all__ = ["restore", "unpack"]

_EXCHANGE = 2
_HERE = -100
_PIECE = 1 << 20
_ROOM = 64 << 20
"""Bytes that stay free on the disk, whatever a backup unpacks to."""


def restore(backup: Path, home: Path, *, replace: bool = False) -> tuple[Backup, Path | None]:
    """What was restored, and where what had been there lies now. Raises UsageError for a home that is not empty, Busy for one in use,
    StoreTooNew, StoreCorrupt; nothing has happened then."""
    home = home.expanduser().resolve()
    try:
        return _restored(backup.expanduser().absolute(), home, replace=replace)
    except OSError as error:
        raise StoreError(
            f"can't restore into {str(home)!r}: {error.strerror or error}; it is as it was",
            fix=f"the folder {str(home.parent)!r} must be one that you may write to; name another home with --into",
        ) from error


def _restored(backup: Path, home: Path, *, replace: bool) -> tuple[Backup, Path | None]:
    filled = home.exists() and any(home.iterdir())
    if filled and not replace:
        raise UsageError(f"the home {str(home)!r} is not empty", fix="name another one with --into, or put it aside with --replace")
    if filled:
        _check_idle(home)
    home.parent.mkdir(parents=True, exist_ok=True)
    for left in home.parent.glob(f".{home.name}.restoring-*"):  # what a killed process left
        if (held := _held(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(held)
    staging = Path(tempfile.mkdtemp(prefix=f".{home.name}.restoring-", dir=home.parent))
    held = _held(staging)
    try:
        found = unpack(backup, staging)
        _know(staging / "data" / DATABASE, found)
        point("restore.unpacked")
        return found, _moved(staging, home, filled=filled)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if held is not None:
            os.close(held)


def _know(database: Path, backup: Backup) -> None:
    """A home knows of the backup that it is made of, so that a purge reaches that too."""
    with translating(database), closing(connect(database, writing=True)) as connection:
        remember(connection, backup.path, "backup", backup.made_at, backup.packed)


def _held(folder: Path) -> int | None:
    """A lock on the folder; None when another process, which still fills it, has it, or it is gone."""
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
    """Fills an empty folder with what is in the backup, its database brought to the newest schema. Raises as `restore` does."""

    def take(name: str, stream: IO[bytes]) -> None:
        try:
            _write(home / _place(name), stream)
        except OSError as error:  # not to be taken for one of reading the backup
            raise StoreError(f"can't unpack {name!r} into {str(home)!r}: {error.strerror or error}; nothing was changed") from error

    found = read(backup, take)
    if found.schema > newest():
        raise StoreTooNew(
            f"{str(backup)!r} holds a database of a newer moot (schema {found.schema}, this one knows {newest()})", fix="upgrade moot"
        )
    database = home / "data" / DATABASE
    prepare(database, FileLock(home / "state" / "migrate.lock"))
    for copy in (home / "data" / "backups").glob("*.db"):  # the backup itself is the copy of before
        copy.unlink()
    return found


def _write(path: Path, stream: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        while piece := stream.read(_PIECE):
            found = os.statvfs(path.parent)
            if found.f_bavail * found.f_frsize < _ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _place(name: str) -> str:
    return f"data/{name}" if name == DATABASE or name.startswith("blobs/") else name


def _check_idle(home: Path) -> None:
    presence = Presence(home / "state" / "writers.lock")
    try:
        if presence.others():
            raise Busy(f"the home {str(home)!r} is in use", fix="end every moot that uses it, `moot serve` too")
    finally:
        presence.leave()


def _moved(staging: Path, home: Path, *, filled: bool) -> Path | None:
    """Puts it in its place in one move; where what was there lies now."""
    if not filled:
        staging.rename(home)  # an empty folder may be there
        return None
    aside = home.with_name(f"{home.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    _exchange(staging, home)
    point("restore.exchanged")
    staging.rename(aside)
    return aside


def _exchange(one: Path, other: Path) -> None:
    """Both folders in each other's place, in one step where the system can do that."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is not None and renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return
    between = other.with_name(f".{other.name}.between-{os.getpid()}")
    other.rename(between)
    one.rename(other)
    between.rename(one)
