"""Conversion of SQLite's errors to moot's errors, where they are first caught."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from moot.errors import MootError, StoreCorrupt, StoreError, StoreFull, UsageError
from moot.store.database.connection import sqlite

FOREIGN_ERRORS: tuple[type[Exception], ...] = (sqlite.Error, ValueError, OverflowError)
"""Exceptions that must not leave the store unconverted: errors from SQLite, JSON, text encoding, and integers over 64 bits."""
_IOERR, _FULL = 10, 13
_FILES = 4  # file descriptors that SQLite needs to open a database, plus one; SQLite closes its own before it reports an error


def translate_error(error: Exception, path: Path) -> MootError:
    """Convert an exception to a MootError. A MootError is returned unchanged."""
    if isinstance(error, MootError):
        return error
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return corrupt_error(path, f"stored data cannot be read ({error})")
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return _unstorable(error)
    if isinstance(error, ValueError):
        return StoreError(f"This value cannot be stored: {error}.")
    code = _code(error)
    if code == _FULL or (code == _IOERR and _no_room(path)):
        return StoreFull(
            f"No space left to write {str(path)!r} ({error}). The change was not stored.",
            fix="Free space on that disk (or raise the quota or file size limit) and try again.",
        )
    match code:
        case 11 | 26:
            return corrupt_error(path, str(error))
        case 5 | 6:
            return StoreError(
                f"Another process has kept {str(path)!r} locked for too long.", fix="Run `moot ps` to find it, then try again."
            )
        case 14 if _no_descriptor():
            return StoreError(f"Cannot open {str(path)!r}: too many open files.", fix="Raise the limit, for example with ulimit -n 1024.")
        case 8 | 14:
            return StoreError(f"Cannot open {str(path)!r} for writing ({error}).", fix=f"Check the permissions of {str(path.parent)!r}.")
        case _:
            return StoreError(f"Database error in {str(path)!r}: {error}.", fix="Run `moot doctor`.")


def _unstorable(error: UnicodeEncodeError | OverflowError) -> UsageError:
    if isinstance(error, OverflowError):
        return UsageError("A number in the request is too large.", fix="Use a number below 2**63.")
    return UsageError(f"{error.object!r} is not valid Unicode text and cannot be stored.", fix="Remove the lone surrogates from it.")


def corrupt_error(path: Path, why: str) -> StoreCorrupt:
    """Return the error for a file that is damaged or is not a moot database."""
    return StoreCorrupt(
        f"{str(path)!r} is not a valid moot database: {why}.",
        fix=f"Copy it to a safe place and replace it with the newest file in {str(path.parent / 'backups')!r}, or run `moot doctor`.",
    )


def is_unreliable(error: Exception, path: Path) -> bool:
    """Return True if the disk failed in a way that makes the connection unreliable, such as a failed fsync."""
    return _code(error) == _IOERR and not _no_room(path)


def _code(error: Exception) -> int:
    """Return the primary error code; not every library reports extended codes."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _no_room(path: Path) -> bool:
    """Return True if a test write fails for lack of space, a quota or a file size limit. SQLite reports the last two only as I/O errors."""
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


def check_room(path: Path) -> None:
    """Raise StoreError if this database or its folder is read-only, StoreFull if there is no space."""
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreError(f"{str(path.parent)!r} is read-only.", fix="Check the permissions of the folder and how its disk is mounted.")
    if _no_room(path):
        raise StoreFull(f"No space left to write {str(path)!r}.", fix="Free space on that disk.")


def _no_descriptor() -> bool:
    """Return True if the process has no file descriptors left."""
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
def translated_errors(path: Path) -> Generator[None]:
    """Convert SQLite and JSON exceptions raised in the block to a MootError."""
    try:
        yield
    except FOREIGN_ERRORS as error:
        raise translate_error(error, path) from error
