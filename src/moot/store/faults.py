"""SQLite's errors in our words, translated once where they enter."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from moot.errors import MootError, StoreCorrupt, StoreError, StoreFull, UsageError
from moot.store.library import sqlite

__all__ = ["broken_sync", "translated", "translating"]

_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26
_IOERR_WRITE, _IOERR_SYNCS = 778, frozenset({1034, 1290})
"""Extended codes: a write beyond a quota or a file size limit; fsync of a file or of its directory."""


def translated(error: Exception, path: Path) -> MootError:
    """What this failure of the library means for our caller; our own errors come back as they are."""
    if isinstance(error, MootError):
        return error
    if isinstance(error, UnicodeEncodeError):
        return UsageError(f"{error.object!r} is not valid Unicode text, so it can't be stored", fix="remove the lone surrogates from it")
    code = getattr(error, "sqlite_errorcode", 0) or 0
    if code == _IOERR_WRITE or code & 0xFF == _FULL:
        return StoreFull(
            f"no room to write {str(path)!r} ({error}); nothing of this change was kept",
            fix="free space on that disk (or raise the quota or file size limit) and try again",
        )
    match code & 0xFF:
        case 11 | 26:
            return corrupt(path, str(error))
        case 5 | 6:
            return StoreError(f"another process has kept {str(path)!r} locked for too long", fix="see `moot ps`, then try again")
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


def broken_sync(error: Exception) -> bool:
    """Whether the disk failed in a way after which a connection must not be trusted any more."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    return code in _IOERR_SYNCS or (code & 0xFF == _IOERR and code != _IOERR_WRITE)


@contextmanager
def translating(path: Path) -> Generator[None]:
    """Lets only our own errors out."""
    try:
        yield
    except (sqlite.Error, UnicodeEncodeError) as error:
        raise translated(error, path) from error
