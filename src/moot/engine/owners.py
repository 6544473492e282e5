"""Says which processes live: each holds an OS lock on a file of its own, which the system lets go of however the process ends."""

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
    """Where a process runs."""

    pid: int
    host: str


class Owner:
    """This process as the owner of runs. A laptop that slept still holds its lock: only a dead owner is ever taken over."""

    def __init__(self, folder: Path, id: str) -> None:
        """Takes the lock. Raises StoreError when the folder can't be written."""
        self.id = id
        self._folder = folder
        self._path = folder / f"{id}.lock"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = self._take()
        except OSError as error:
            raise StoreError(f"cannot write {str(self._path)!r}: {error.strerror}", fix="check the folder, or set MOOT_HOME") from error

    def _take(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            # between open and lock another process may have cleared the file away as a dead one's
            if self._path.exists() and os.fstat(file).st_ino == self._path.stat().st_ino:
                os.write(file, dumps({"pid": os.getpid(), "host": socket.gethostname()}))
                return file
            os.close(file)

    def lives(self, id: str) -> bool:
        """Whether that owner's process still runs; this one's always does."""
        return id == self.id or _is_locked(self._folder / f"{id}.lock")

    def clear(self) -> None:
        """Takes away the files that dead ones left."""
        for path in self._folder.glob("*.lock"):
            if path != self._path and not _is_locked(path):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def place_of(folder: Path, id: str) -> Place | None:
    """Where the owner of that id runs, or ran; None when its file is gone or says nothing."""
    try:
        said = loads_object((folder / f"{id}.lock").read_bytes())
    except (OSError, ValueError):
        return None
    pid, host = said.get("pid"), said.get("host")
    return Place(pid, host) if isinstance(pid, int) and isinstance(host, str) else None


def living(folder: Path) -> tuple[list[Place], int]:
    """Where the owners of a home's runs live, and how many files dead ones left. Takes nothing away."""
    files = sorted(folder.glob("*.lock"))
    held = [path for path in files if _is_locked(path)]
    places = [place for path in held if (place := place_of(folder, path.stem)) is not None]
    return places, len(files) - len(held)


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # shared: two that look at a dead one's file at the same time must not take each other for its owner
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
