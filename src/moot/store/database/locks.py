"""Locks between processes, which the operating system releases when their holder exits, and durable renames."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from moot.errors import StoreError

FORGETTING = "forgetting.lock"
"""Lock file in the state folder, held by the one process that purges, redacts or backs up."""

SCRUBBING = "scrubbing.lock"
"""Lock file in the state folder, held while one process rewrites the whole database."""


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"Cannot create the lock file {str(path)!r}: {error.strerror}.", fix="Make MOOT_HOME writable.") from error


def sync_folder(folder: Path) -> None:
    """Fsync a folder, so that a rename in it is durable."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class FileLock:
    """A lock with one holder at a time, among all processes and all `FileLock`s on the path in this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def take(self, *, wait: bool = True) -> bool:
        """Acquire the lock and return True; without `wait`, return False if it is held."""
        file = _open(self.path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def held(self) -> bool:
        """Return True if another holder has the lock."""
        if not self.path.exists() or not self.take(wait=False):
            return self.path.exists()
        self.release()
        return False

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_error: object) -> None:
        self.release()


class Presence:
    """A marker showing that this process writes to the database: each writer holds a shared lock on the same file until it closes.

    Checking for other writers takes no lock, so a process that checks is not mistaken for a writer.
    """

    _RECORD = "hhqqi4x"
    """`struct flock` on Linux: type, origin, start, length, pid."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)
        self._ask = struct.pack(self._RECORD, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, struct.pack(self._RECORD, fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0))

    def others(self) -> bool:
        """Return True if another process is present."""
        answer = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, self._ask)
        return struct.unpack(self._RECORD, answer)[0] != fcntl.F_UNLCK

    def leave(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
