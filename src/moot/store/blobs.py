"""Bytes by content: small ones packed in the database, large ones files named by their hash."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from moot.errors import NotFound, StoreCorrupt, StoreError, StoreFull
from moot.store.connect import Connection
from moot.store.reader import Reader
from moot.store.transaction import Transaction
from moot.store.writer import Writer
from moot.types.store import Blob

__all__ = ["PACKED", "ContentStore"]

PACKED = 256 << 10
"""Bytes up to which a blob lies in the database."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEMBERED = 1024
_AT_ONCE = 64 << 10
"""Bytes in all that are hashed on the loop: a sixth of a millisecond."""
_NAMED = 500
"""Blobs asked for in one statement."""


class ContentStore:
    """`Blobs` on SQLite and a folder beside it."""

    def __init__(self, folder: Path, writer: Writer, reader: Reader) -> None:
        self._folder = folder
        self._writer = writer
        self._reader = reader
        self._sound: dict[str, tuple[int, int, int]] = {}
        """Files whose hash was checked: inode, size and time of change as they were then."""

    async def put(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        return (await self.put_all((data,), media_type))[0]

    async def put_all(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> list[Blob]:
        def hashed() -> list[str]:
            return [hashlib.sha256(piece).hexdigest() for piece in pieces]

        # a few small ones are hashed sooner than the other thread is woken
        names = hashed() if sum(map(len, pieces)) <= _AT_ONCE else await self._reader.call(hashed)
        blobs = [Blob(name, len(piece), media_type) for name, piece in zip(names, pieces, strict=True)]
        packed: dict[str, bytes] = {}
        for name, piece in zip(names, pieces, strict=True):
            if len(piece) <= PACKED:
                packed[name] = piece
            else:
                await self._reader.call(partial(_write, self._file(name), piece))
        return await self._writer.write(partial(_insert, blobs, packed))

    async def get(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        if not _SHA256.fullmatch(sha256):
            raise NotFound(f"{sha256[:80]!r} is no blob's name: 64 hexadecimal digits were expected")
        end = None if limit is None else offset + limit

        def work(connection: Connection) -> bytes:
            row = connection.execute("SELECT data, size FROM blob WHERE sha256 = ?", (sha256,)).fetchone()
            if row is None:
                raise NotFound(f"no blob with the hash {sha256!r}")
            if row[0] is None:
                return self._stretch(sha256, row[1], offset, end)
            if hashlib.sha256(row[0]).hexdigest() != sha256:
                raise _broken(sha256)
            return row[0][offset:end]

        return await self._reader.read(work)

    def _file(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _stretch(self, sha256: str, size: int, offset: int, end: int | None) -> bytes:
        """Part of a file, whose whole hash is checked when we see that file for the first time."""
        path = self._file(sha256)
        try:
            with path.open("rb") as file:
                state = os.fstat(file.fileno())
                seen = (state.st_ino, state.st_size, state.st_mtime_ns)
                if self._sound.get(sha256) != seen:
                    if state.st_size != size or hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                        raise _broken(sha256)
                    if len(self._sound) >= _REMEMBERED:
                        self._sound.clear()
                    self._sound[sha256] = seen
                file.seek(offset)
                return file.read(-1 if end is None else max(end - offset, 0))
        except FileNotFoundError as error:
            raise StoreCorrupt(
                f"the file of blob {sha256!r} is gone: {str(path)!r}", fix="restore the folder of blobs from a backup"
            ) from error
        except OSError as error:
            raise StoreError(f"can't read {str(path)!r}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    """The file whole under its name, on the disk, or not at all."""
    if path.exists():
        return
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with unfinished.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(path)
        finally:
            unfinished.unlink(missing_ok=True)
        _sync(path.parent)
    except OSError as error:
        raise StoreFull(f"can't write the blob {str(path)!r}: {error.strerror}; it was not kept", fix="free space on that disk") from error


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _insert(blobs: Sequence[Blob], packed: Mapping[str, bytes], transaction: Transaction) -> list[Blob]:
    """The blobs as they are kept: one that was there before has the media type of then."""
    found: dict[str, str] = {}
    for begin in range(0, len(blobs), _NAMED):
        names = [blob.sha256 for blob in blobs[begin : begin + _NAMED]]
        found |= transaction.execute(
            f"SELECT sha256, media_type FROM blob WHERE sha256 IN ({', '.join('?' * len(names))})", names
        ).fetchall()
    for blob in blobs:
        if blob.sha256 not in found:
            found[blob.sha256] = blob.media_type
            transaction.execute(
                "INSERT INTO blob (sha256, size, media_type, created_at, data) VALUES (?, ?, ?, ?, ?)",
                (blob.sha256, blob.size, blob.media_type, transaction.now_ms, packed.get(blob.sha256)),
            )
    return [Blob(blob.sha256, blob.size, found[blob.sha256]) for blob in blobs]


def _broken(sha256: str) -> StoreCorrupt:
    return StoreCorrupt(f"the blob {sha256!r} no longer has the bytes of its name", fix="restore it from a backup")
