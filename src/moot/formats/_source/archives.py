"""Zip archives, read with limits because their headers can't be trusted."""

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
"""Magic bytes of a zip archive."""
_FILES = 1_000_000
_RATIO = 200
_FREE = 16 << 20
"""Number of bytes that a member may always have, whatever its compression ratio."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive."""

    name: str
    """Relative path with `/` and without `..`. Other members are ignored."""
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in chunks. Raise UsageError for damaged members and zip bombs."""
        limit = max(_FREE, self.info.compress_size * _RATIO)
        size = 0
        try:
            with self.archive.open(self.info) as file:
                while piece := file.read(_CHUNK):
                    size += len(piece)
                    if size > limit:
                        raise UsageError(
                            f"{self.name!r} in the archive expands to more than {_RATIO} times its size. It may be a zip bomb."
                        )
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise UsageError(f"Can't unpack {self.name!r} from the archive: {error}") from error


@contextmanager
def opened_zip(path: Path) -> Generator[tuple[Member, ...]]:
    """Open an archive and yield its regular files. Raise UsageError if it can't be read."""
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error
    except (zipfile.BadZipFile, ValueError) as error:
        raise UsageError(f"Can't read {str(path)!r} as a zip archive: {error}") from error
    with archive:
        infos = archive.infolist()
        if len(infos) > _FILES:
            raise UsageError(f"{str(path)!r} contains more than {_FILES:,} files.")
        yield tuple(Member(info.filename, archive, info) for info in infos if _is_plain(info))


def _is_plain(info: zipfile.ZipInfo) -> bool:
    name = PurePosixPath(info.filename)
    is_link = info.external_attr >> 28 == 0o12
    return not (info.is_dir() or is_link or name.is_absolute() or ".." in name.parts or "\\" in info.filename)
