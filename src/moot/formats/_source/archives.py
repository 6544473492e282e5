"""The files in a zip, within limits: what an archive says of itself is not believed."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from moot.errors import UsageError

__all__ = ["ZIP", "Member", "opened_zip"]

ZIP = b"PK\x03\x04"
"""How such a file begins."""
_FILES = 1_000_000
_RATIO = 200
_FREE = 16 << 20
"""Bytes that may come of a member whatever its ratio."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive."""

    name: str
    """Relative, with `/`, without `..`; others are passed over."""
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo

    def pieces(self) -> Iterator[bytes]:
        """Its bytes. Raises UsageError for a bomb and for what is damaged."""
        limit = max(_FREE, self.info.compress_size * _RATIO)
        size = 0
        try:
            with self.archive.open(self.info) as file:
                while piece := file.read(_CHUNK):
                    size += len(piece)
                    if size > limit:
                        raise UsageError(f"{self.name!r} in the archive unpacks to more than {_RATIO} times its size: that is no export")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise UsageError(f"{self.name!r} in the archive can't be unpacked: {error}") from error


@contextmanager
def opened_zip(path: Path) -> Generator[tuple[Member, ...]]:
    """Its files, folders and links left out. Raises UsageError."""
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
    except (zipfile.BadZipFile, ValueError) as error:
        raise UsageError(f"{str(path)!r} is no zip that can be read: {error}") from error
    with archive:
        infos = archive.infolist()
        if len(infos) > _FILES:
            raise UsageError(f"{str(path)!r} holds more than {_FILES:,} files")
        yield tuple(Member(info.filename, archive, info) for info in infos if _is_plain(info))


def _is_plain(info: zipfile.ZipInfo) -> bool:
    name = PurePosixPath(info.filename)
    is_link = info.external_attr >> 28 == 0o12
    return not (info.is_dir() or is_link or name.is_absolute() or ".." in name.parts or "\\" in info.filename)
