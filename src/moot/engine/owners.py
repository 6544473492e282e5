"""Detection of live processes. Each process holds an OS lock on a file of its own, which the system releases however the process ends."""

from __future__ import annotations

import fcntl
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from moot.errors import StoreError
from moot.types.canonical import dumps, loads_object


@dataclass(frozen=True, slots=True)
class Place:
    """The machine and id of a process."""

    pid: int
    host: str


class Owner:
    """This process as the owner of runs. A suspended process keeps its lock, so only dead owners are ever replaced."""

    def __init__(self, folder: Path, id: str) -> None:
        """Acquire the lock. Raise StoreError if the folder can't be written."""
        self.id = id
        self._folder = folder
        self._path = folder / f"{id}.lock"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = self._acquire()
        except OSError as error:
            raise StoreError(
                f"can't write {str(self._path)!r}: {error.strerror}", fix="check the permissions of the folder, or set MOOT_HOME"
            ) from error

    def _acquire(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            # another process may have removed the file as stale between open and lock
            if self._path.exists() and os.fstat(file).st_ino == self._path.stat().st_ino:
                os.write(file, dumps({"pid": os.getpid(), "host": socket.gethostname()}))
                return file
            os.close(file)

    def lives(self, id: str) -> bool:
        """Return whether that owner's process is alive. Always true for this process."""
        return id == self.id or _is_locked(self._folder / f"{id}.lock")

    def clear(self) -> None:
        """Remove the files of dead owners."""
        for path in self._folder.glob("*.lock"):
            if path != self._path and not _is_locked(path):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def place_of(folder: Path, id: str) -> Place | None:
    """Return where the owner runs or ran, or None if its file is missing or invalid."""
    try:
        info = loads_object((folder / f"{id}.lock").read_bytes())
    except (OSError, ValueError):
        return None
    pid, host = info.get("pid"), info.get("host")
    return Place(pid, host) if isinstance(pid, int) and isinstance(host, str) else None


def living(folder: Path) -> tuple[list[Place], int]:
    """Return the places of a home's live owners, and the number of files of dead owners. Removes nothing."""
    files = sorted(folder.glob("*.lock"))
    locked = [path for path in files if _is_locked(path)]
    places = [place for path in locked if (place := place_of(folder, path.stem)) is not None]
    return places, len(files) - len(locked)


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # a shared lock, so that two processes checking a stale file don't mistake each other for its owner
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
