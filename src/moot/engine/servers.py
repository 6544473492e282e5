"""Lookup of the server of a home, by an OS lock on a file with its URL, so that a dead server is never mistaken for a live one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moot.errors import Busy, StoreError
from moot.types.canonical import dumps, loads_object

__all__ = ["Serving", "claimed", "serving"]


_SIZE = 512
"""Size of the file's content, padded with spaces."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A running server."""

    url: str
    """URL for browsers on this machine, such as `http://127.0.0.1:4747`."""
    pid: int
    built: bool = True
    """True if the web page is built."""
    follows: bool = False
    """True if it imports new conversations of other agents automatically."""
    code: Callable[[], Awaitable[str]] | None = None
    """Function that creates a sign-in code; None if the server is another process."""


@contextmanager
def claimed(home: Path) -> Generator[Callable[[Serving], None]]:
    """Claim the home for this process's server for the duration of the block. Yield a function that publishes the URL. Raise Busy."""
    path = _file(home)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(
            f"can't write {str(path)!r}: {error.strerror}", fix="check the permissions of the folder, or set MOOT_HOME"
        ) from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _already_served(home) from error
        os.ftruncate(file, 0)
        yield lambda place: _write(file, place)
        os.ftruncate(file, 0)
    finally:
        os.close(file)


def serving(home: Path) -> Serving | None:
    """Return the live server of that home, or None if there is none or it is not ready yet."""
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


def _write(file: int, place: Serving) -> None:
    """Write everything at once, so that concurrent readers see either the old or the new content."""
    content = dumps({"url": place.url, "pid": place.pid, "built": place.built, "follows": place.follows})
    os.pwrite(file, content.ljust(_SIZE), 0)


def _read(file: int) -> Serving | None:
    try:
        info = loads_object(os.pread(file, 4096, 0))
    except ValueError:
        return None
    url, pid = info.get("url"), info.get("pid")
    if not isinstance(url, str) or not isinstance(pid, int):
        return None
    return Serving(url, pid, info.get("built") is True, info.get("follows") is True)


def _already_served(home: Path) -> Busy:
    other = serving(home)
    if other is None:
        return Busy(f"another server is starting for {str(home)!r}", fix="moot web")
    return Busy(
        f"a server for this home is already running at {other.url} (process {other.pid})", fix="open it with moot web, or stop it first"
    )
