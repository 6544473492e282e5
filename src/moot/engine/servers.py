"""Which server serves a home: an OS lock on a file that says where, so that a dead one is never taken for a living one."""

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
"""Bytes of what is said; the rest of them are blanks."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that answers."""

    url: str
    """Where this machine's browser reaches it, as `http://127.0.0.1:4747`."""
    pid: int
    built: bool = True
    """Whether it has a page to show."""
    follows: bool = False
    """Whether what the agents on its machine write comes in by itself."""
    code: Callable[[], Awaitable[str]] | None = None
    """A code for signing in; None when the server is another process."""


@contextmanager
def claimed(home: Path) -> Generator[Callable[[Serving], None]]:
    """This process serves that home for as long as the block lasts; yields how to say where. Raises Busy when another one does."""
    path = _file(home)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(f"cannot write {str(path)!r}: {error.strerror}", fix="check the folder, or set MOOT_HOME") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _taken(home) from error
        os.ftruncate(file, 0)
        yield lambda place: _write(file, place)
        os.ftruncate(file, 0)
    finally:
        os.close(file)


def serving(home: Path) -> Serving | None:
    """The server of that home; None when none lives, or it does not answer yet."""
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
    """In one piece, and over all that was there before: whoever reads meanwhile sees the one or the other."""
    said = dumps({"url": place.url, "pid": place.pid, "built": place.built, "follows": place.follows})
    os.pwrite(file, said.ljust(_SIZE), 0)


def _read(file: int) -> Serving | None:
    try:
        said = loads_object(os.pread(file, 4096, 0))
    except ValueError:
        return None
    url, pid = said.get("url"), said.get("pid")
    if not isinstance(url, str) or not isinstance(pid, int):
        return None
    return Serving(url, pid, said.get("built") is True, said.get("follows") is True)


def _taken(home: Path) -> Busy:
    other = serving(home)
    if other is None:
        return Busy(f"another server is just starting for {str(home)!r}", fix="moot web")
    return Busy(
        f"this home is served already at {other.url}, by the process {other.pid}", fix="open it with moot web, or stop that one first"
    )
