"""SQLite's errors in our words, translated once where they enter."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from moot.errors import MootError, StoreCorrupt, StoreError, StoreFull, UsageError
from moot.store.library import sqlite

__all__ = ["FOREIGN", "corrupt", "distrusted", "translated", "translating"]

FOREIGN: tuple[type[Exception], ...] = (sqlite.Error, ValueError)
"""What must not come out of this room as it is: the library's errors, and those of reading and writing JSON and text."""
_IOERR, _FULL = 10, 13
_FILES = 4
"""What SQLite opens for a database, and one more; what it had got of them it has given back by the time that it complains."""


def translated(error: Exception, path: Path) -> MootError:
    """What this failure of the library means for our caller; our own errors come back as they are."""
    if isinstance(error, MootError):
        return error
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return corrupt(path, f"what is stored can't be read ({error})")
    if isinstance(error, UnicodeEncodeError):
        return UsageError(f"{error.object!r} is not valid Unicode text, so it can't be stored", fix="remove the lone surrogates from it")
    if isinstance(error, ValueError):
        return StoreError(f"this can't be stored: {error}")
    code = _code(error)
    if code == _FULL or (code == _IOERR and _no_room(path)):
        return StoreFull(
            f"no room to write {str(path)!r} ({error}); nothing of this change was kept",
            fix="free space on that disk (or raise the quota or file size limit) and try again",
        )
    match code:
        case 11 | 26:
            return corrupt(path, str(error))
        case 5 | 6:
            return StoreError(f"another process has kept {str(path)!r} locked for too long", fix="see `moot ps`, then try again")
        case 14 if _no_descriptor():
            return StoreError(f"{str(path)!r} can't be opened: too many files are open", fix="raise the limit, as in ulimit -n 1024")
        case 8 | 14:
            return StoreError(f"{str(path)!r} can't be opened for writing ({error})", fix=f"check the permissions of {str(path.parent)!r}")
        case _:
            return StoreError(f"the database {str(path)!r} failed: {error}", fix="run `moot doctor`")


def corrupt(path: Path, why: str) -> StoreCorrupt:
    """The error for a file that is no sound database of ours."""
    return StoreCorrupt(
        f"{str(path)!r} is not a sound moot database: {why}",
        fix=f"keep a copy of it, then put the newest file of {str(path.parent / 'backups')!r} in its place, or run `moot doctor`",
    )


def distrusted(error: Exception, path: Path) -> bool:
    """Whether the disk failed in a way after which a connection must not be trusted any more: above all a failed fsync."""
    return _code(error) == _IOERR and not _no_room(path)


def _code(error: Exception) -> int:
    """The primary code; extended ones are not to be had from every library."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _no_room(path: Path) -> bool:
    """Whether a quota or a file size limit stands behind an I/O error, which SQLite does not say: by writing where the log would."""
    probe = path.with_name(f".room-{os.getpid()}")
    try:
        size = max((file.stat().st_size for file in path.parent.glob(f"{path.name}*")), default=0)
        with probe.open("wb") as file:
            file.seek(size)
            file.write(bytes(1 << 16))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    finally:
        probe.unlink(missing_ok=True)
    return False


def _no_descriptor() -> bool:
    """Whether it is the process's own limit that keeps a file from being opened."""
    opened: list[int] = []
    try:
        opened += (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_FILES))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for file in opened:
            os.close(file)
    return False


@contextmanager
def translating(path: Path) -> Generator[None]:
    """Lets only our own errors out."""
    try:
        yield
    except FOREIGN as error:
        raise translated(error, path) from error
