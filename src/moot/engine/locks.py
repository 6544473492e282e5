"""File locks that show which processes and servers are alive. The operating system releases them no matter how a process ends."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from moot.errors import Busy, StoreError, StoreFull
from moot.types.canonical import dumps, loads_object

log = logging.getLogger("moot.engine")


@dataclass(frozen=True, slots=True)
class Place:
    """The machine and id of a process."""

    pid: int
    host: str


class Owner:
    """The lock that marks this process as an owner of runs. A suspended process keeps its lock, so only dead owners are replaced."""

    def __init__(self, folder: Path, id: str) -> None:
        self.id = id
        self._folder = folder
        self._path = folder / f"{id}.lock"
        self._file = -1

    def hold(self) -> str:
        """Acquire the lock if this process doesn't hold it yet, and remove the files of dead owners.
        Return the id with which to claim runs.

        A process that only reads doesn't need a lock. Raise StoreError if the folder can't be written.
        """
        if self._file < 0:
            try:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._file = self._acquire()
                self._clear()
            except OSError as error:
                raise _not_writable(self._path, error) from error
        return self.id

    def _acquire(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                # another process may have removed the file as stale between open and lock
                if self._path.exists() and os.fstat(file).st_ino == self._path.stat().st_ino:
                    os.write(file, dumps({"pid": os.getpid(), "host": socket.gethostname()}))
                    return file
            except OSError:
                self._path.unlink(missing_ok=True)
                os.close(file)
                raise
            os.close(file)

    def _clear(self) -> None:
        for path in self._folder.glob("*.lock"):
            if path != self._path and not _is_locked(path):
                path.unlink(missing_ok=True)

    def lives(self, id: str) -> bool:
        """Return whether the process of this owner is alive. The result is always True for the current process."""
        return id == self.id or _is_locked(self._folder / f"{id}.lock")

    def close(self) -> None:
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def owner_place(folder: Path, id: str) -> Place | None:
    """Return the machine and process id of the owner, or None if its file is missing or invalid."""
    try:
        info = loads_object((folder / f"{id}.lock").read_bytes())
    except (OSError, ValueError):
        return None
    pid, host = info.get("pid"), info.get("host")
    return Place(pid, host) if isinstance(pid, int) and isinstance(host, str) else None


def live_owners(folder: Path) -> tuple[list[Place], int]:
    """Return the processes of live owners of moot's home, and the number of files left behind by dead owners. No file is removed."""
    files = sorted(folder.glob("*.lock"))
    locked = [path for path in files if _is_locked(path)]
    places = [place for path in locked if (place := owner_place(folder, path.stem)) is not None]
    return places, len(files) - len(locked)


def _not_writable(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"No space left to write {str(path)!r}.", fix="Free space on that disk (or raise the quota) and try again.")
    return StoreError(f"Can't write {str(path)!r}: {error.strerror}.", fix="Check the permissions of the folder, or set MOOT_HOME.")


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # read access is enough for a shared lock, even on a read-only disk
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


_SIZE = 512
"""Size of the file's content, padded with spaces."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A running server."""

    url: str
    """URL for browsers on this machine, such as `http://127.0.0.1:4747`."""
    pid: int
    built: bool = True
    """True if the web page has been built."""
    follows: bool = False
    """True if the server automatically imports new conversations from other agents."""
    code: Callable[[], Awaitable[str]] | None = None
    """Function that creates a sign-in code; None if the server is a different process."""


@contextmanager
def claim_home(home: Path) -> Generator[Callable[[ServerInfo], None]]:
    """Claim moot's home for this process's server for the duration of the block. Yield a function that publishes the URL.

    Raise Busy if another server has claimed the home.

    A home on a read-only disk is not claimed, because its servers can't change anything.
    """
    path = _file(home)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.EROFS:
            yield lambda _: None
            return
        raise _not_writable(path, error) from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            other = find_server(home)
            if other is None:
                raise Busy(f"Another server is starting for {str(home)!r}.", fix="moot web") from error
            message = f"A server for this home is already running at {other.url} (process {other.pid})."
            raise Busy(message, fix="Open it with `moot web`, or stop it first.") from error
        os.ftruncate(file, 0)
        yield lambda place: _write(file, place)
        os.ftruncate(file, 0)
    finally:
        os.close(file)


@contextmanager
def claim_channel(home: Path, name: str) -> Generator[None]:
    """Claim a channel for this process for the duration of the block.

    Raise Busy if another process has claimed the channel, because together they would answer everything twice.
    """
    path = home / "state" / "channels" / f"{sha256(name.encode()).hexdigest()[:16]}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _not_writable(path, error) from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"Another process is already serving the channel {name!r}.", fix="Stop it first.") from error
        yield
    finally:
        os.close(file)


def find_server(home: Path) -> ServerInfo | None:
    """Return the running server of this home, or None if there is none or it is not ready yet."""
    try:
        file = os.open(_file(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file)
    finally:
        os.close(file)
    return None


def _file(home: Path) -> Path:
    return home / "state" / "server.lock"


def _write(file: int, place: ServerInfo) -> None:
    """Write everything in a single call, so that concurrent readers see either the old or the new content."""
    content = dumps({"url": place.url, "pid": place.pid, "built": place.built, "follows": place.follows})
    try:
        os.pwrite(file, content.ljust(_SIZE), 0)
    except OSError as error:  # such as a full disk; the server still works for reading
        log.error("other commands can't find this server: %s", error)


def _read(file: int) -> ServerInfo | None:
    try:
        info = loads_object(os.pread(file, 4096, 0))
    except ValueError:
        return None
    url, pid = info.get("url"), info.get("pid")
    if not isinstance(url, str) or not isinstance(pid, int):
        return None
    return ServerInfo(url, pid, info.get("built") is True, info.get("follows") is True)
