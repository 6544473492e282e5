"""Locks between processes that the system itself drops when their holder dies."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from moot.errors import StoreError

__all__ = ["FORGETTING", "SCRUBBING", "FileLock", "Presence"]

FORGETTING = "forgetting.lock"
"""In the folder of states: held by the one process that purges, redacts or backs up."""

SCRUBBING = "scrubbing.lock"
"""In the folder of states: held while one process writes the whole database anew."""


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"can't make the lock file {str(path)!r}: {error.strerror}", fix="check that MOOT_HOME can be written") from error


class FileLock:
    """One holder at a time, of all processes and of all `FileLock`s on that path in this one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def take(self, *, wait: bool = True) -> bool:
        """False when somebody else holds it and we would have to wait."""
        file = _open(self.path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def held(self) -> bool:
        """Whether somebody else holds it now."""
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
    """Says to others that this process writes, and whether others do: everybody holds the same shared lock for as long as it lives.

    Asking takes no lock, so nobody can be mistaken for alive because somebody asks.
    """

    _RECORD = "hhqqi4x"
    """`struct flock` of Linux: type, whence, start, length, pid."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)
        self._ask = struct.pack(self._RECORD, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, struct.pack(self._RECORD, fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0))

    def others(self) -> bool:
        """Whether somebody else is there too."""
        answer = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, self._ask)
        return struct.unpack(self._RECORD, answer)[0] != fcntl.F_UNLCK

    def leave(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
