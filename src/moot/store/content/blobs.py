"""Blobs: small ones are stored in the database, large ones as files named by their hash."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import AsyncIterable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from moot.errors import LimitReached, NotFound, StoreCorrupt, StoreError, StoreFull
from moot.store.database.blob_rows import insert_blobs
from moot.store.database.connection import Connection, Queries
from moot.store.database.locks import sync_folder
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.lookup import OWNED
from moot.store.tree.projects import ensure_project
from moot.types.blob import Blob, StagedBlobs
from moot.types.conversation import DEFAULT_PROJECT
from moot.types.token import LOCAL_USER

PACKED = 256 << 10
"""Maximum size in bytes of a blob in the database."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEMBERED = 1024
_AT_ONCE = 64 << 10  # maximum total bytes hashed on the event loop: a sixth of a millisecond


class IncomingFile:
    """A large blob that arrives in pieces.

    The file gets its final name once it is completely on disk. The methods block: call them in a thread.
    """

    def __init__(self, files: BlobFiles) -> None:
        self.size = 0
        self._files = files
        self._hash = hashlib.sha256()
        self._path = files.folder / f".incoming.{os.urandom(8).hex()}"
        with _kept_on_disk(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = self._path.open("xb")

    def add(self, piece: bytes) -> None:
        """Append a piece to the file. Raise StoreFull if writing fails."""
        self._hash.update(piece)
        self.size += len(piece)
        with _kept_on_disk(self._path):
            self._file.write(piece)

    def finish(self) -> str:
        """Move the file to its final name and return its hash. Raise StoreFull if that fails."""
        name = self._hash.hexdigest()
        path = self._files.path(name)
        with _kept_on_disk(path):
            self._file.flush()
            os.fsync(self._file.fileno())
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.rename(path)
            sync_folder(path.parent)
        return name

    def drop(self) -> None:
        """Delete the file unless it was finished."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class BlobFiles:
    """The folder of large blobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sound: dict[str, tuple[int, int, int]] = {}
        """Files whose hash was verified, with their inode, size and modification time at that point."""

    def path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        """Return True if the blob's file exists."""
        return self.path(sha256).exists()

    def begin(self) -> IncomingFile:
        """Create a file that gets its final name once it is complete. Raise StoreFull if that fails."""
        return IncomingFile(self)

    def write(self, data: bytes) -> None:
        """Store a whole file durably. Raise StoreFull if writing fails."""
        incoming = self.begin()
        try:
            incoming.add(data)
            incoming.finish()
        finally:
            incoming.drop()

    def measure(self, sha256: str) -> tuple[int, str]:
        """Return the size and hash of the file on disk. Raise OSError if it can't be read."""
        path = self.path(sha256)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest

    def read_range(self, sha256: str, size: int, offset: int, end: int | None) -> bytes:
        """Return part of a file. Its hash is verified when the file is first read."""
        path = self.path(sha256)
        try:
            with path.open("rb") as file:
                state = os.fstat(file.fileno())
                stamp = (state.st_ino, state.st_size, state.st_mtime_ns)
                if self._sound.get(sha256) != stamp:
                    if state.st_size != size or hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                        raise _broken(sha256)
                    if len(self._sound) >= _REMEMBERED:
                        self._sound.clear()
                    self._sound[sha256] = stamp
                file.seek(offset)
                return file.read(-1 if end is None else max(end - offset, 0))
        except FileNotFoundError as error:
            raise StoreCorrupt(
                f"The file of blob {sha256!r} is missing: {str(path)!r}.", fix="Restore the blob folder from a backup."
            ) from error
        except OSError as error:
            raise StoreError(f"Cannot read {str(path)!r}: {error.strerror}.") from error


class ContentStore:
    """The SQLite implementation of `Blobs`. Bytes are stored once; `blob_owner` lists a blob's owners, with a media type for each."""

    def __init__(self, files: BlobFiles, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._files = files
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def put(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        return (await self.put_all((data,), media_type))[0]

    async def put_all(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> list[Blob]:
        staged = await self.stage(pieces, media_type)
        return await self._writer.write(partial(_put, self._files, staged, self._owner or LOCAL_USER))

    async def stage(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> StagedBlobs:
        def hashed() -> list[str]:
            return [hashlib.sha256(piece).hexdigest() for piece in pieces]

        # hashing a few small blobs takes less time than waking the other thread
        names = hashed() if sum(map(len, pieces)) <= _AT_ONCE else await self._reader.call(hashed)
        small = await self._write_files(dict(zip(names, pieces, strict=True)))
        staged = StagedBlobs(tuple(Blob(name, len(piece), media_type) for name, piece in zip(names, pieces, strict=True)), small)
        if large := tuple(blob for blob in staged.blobs if blob.sha256 not in small):  # a file without a row would never be deleted
            await self._writer.write(partial(_put, self._files, StagedBlobs(large, {}), self._owner or LOCAL_USER))
        return staged

    async def upload(self, data: bytes, media_type: str, *, quota: int = 0) -> Blob:
        owner = self._owner or LOCAL_USER
        name = await self._reader.call(lambda: hashlib.sha256(data).hexdigest())
        blob = Blob(name, len(data), media_type)
        await self._reader.read(partial(_check_quota, owner, blob, quota))  # before writing a file; the transaction checks again
        staged = StagedBlobs((blob,), await self._write_files({name: data}))
        return await self._writer.write(partial(_upload, self._files, staged, owner, quota), sync=True)

    async def put_from(self, pieces: AsyncIterable[bytes], media_type: str = "application/octet-stream") -> Blob:
        small = bytearray()
        incoming: IncomingFile | None = None
        try:
            async for piece in pieces:
                if incoming is None:
                    small += piece
                    if len(small) <= PACKED:
                        continue
                    incoming, piece = self._files.begin(), bytes(small)
                # not on the reader's thread: a large file on a slow disk must not delay other reads
                await to_thread.run_sync(incoming.add, piece)
            if incoming is None:
                return await self.put(bytes(small), media_type)
            name = await to_thread.run_sync(incoming.finish)
            staged = StagedBlobs((Blob(name, incoming.size, media_type),), {})
            return (await self._writer.write(partial(_put, self._files, staged, self._owner or LOCAL_USER)))[0]
        finally:
            if incoming is not None:
                incoming.drop()

    async def about(self, sha256: str) -> Blob:
        return (await self._reader.read(partial(self._row, sha256)))[1]

    async def get(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        end = None if limit is None else offset + limit

        def work(connection: Connection) -> bytes:
            data, blob = self._row(sha256, connection)
            if data is None:
                return self._files.read_range(sha256, blob.size, offset, end)
            if hashlib.sha256(data).hexdigest() != sha256:
                raise _broken(sha256)
            return data[offset:end]

        return await self._reader.read(work)

    async def _write_files(self, pieces: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Write large blobs to their files and return the small ones, which go into the database."""
        for name, piece in pieces.items():
            if len(piece) > PACKED and not self._files.path(name).exists():
                await self._reader.call(partial(self._files.write, piece))
        return {name: piece for name, piece in pieces.items() if len(piece) <= PACKED}

    def _row(self, sha256: str, connection: Connection) -> tuple[bytes | None, Blob]:
        """Return the bytes, if they are in the database, and the blob's size and media type. Raise NotFound if there is no such blob."""
        if not _SHA256.fullmatch(sha256):
            raise NotFound(f"Invalid blob hash {sha256[:80]!r}: expected 64 hexadecimal digits.")
        row: Any = connection.execute(
            "SELECT b.data, b.size, o.media_type FROM blob AS b JOIN blob_owner AS o ON o.sha256 = b.sha256"
            f" WHERE b.sha256 = ?{OWNED} LIMIT 1",
            (sha256, self._owner),
        ).fetchone()
        if row is None:
            raise NotFound(f"No blob has the hash {sha256!r}.")
        return row[0], Blob(sha256, row[1], row[2])


@contextmanager
def _kept_on_disk(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise StoreFull(f"Cannot write blob {str(path)!r}: {error.strerror}. It was not stored.", fix="Free space on that disk.") from error


def _put(files: BlobFiles, staged: StagedBlobs, owner: str, transaction: Transaction) -> list[Blob]:
    ensure_project(transaction, DEFAULT_PROJECT, owner)
    return insert_blobs(transaction, staged, owner, files.has)


def _upload(files: BlobFiles, staged: StagedBlobs, owner: str, quota: int, transaction: Transaction) -> Blob:
    (blob,) = staged.blobs
    _check_quota(owner, blob, quota, transaction)
    (kept,) = _put(files, staged, owner, transaction)
    transaction.execute(
        "UPDATE blob_owner SET uploaded_at = coalesce(uploaded_at, ?) WHERE sha256 = ? AND owner_id = ?",
        (transaction.now_ms, blob.sha256, owner),
    )
    return kept


def _check_quota(owner: str, blob: Blob, quota: int, queries: Queries) -> None:
    row: Any = queries.execute(
        "SELECT coalesce(sum(b.size), 0) FROM blob_owner AS o JOIN blob AS b ON b.sha256 = o.sha256"
        " WHERE o.owner_id = ? AND o.uploaded_at IS NOT NULL AND o.sha256 <> ?",
        (owner, blob.sha256),
    ).fetchone()
    if quota and row[0] + blob.size > quota:
        raise LimitReached(
            f"This upload of {blob.size:,} bytes exceeds the quota: {row[0]:,} of {quota:,} bytes are used.",
            fix="Raise limits.uploads in the configuration.",
        )


def _broken(sha256: str) -> StoreCorrupt:
    return StoreCorrupt(f"The content of blob {sha256!r} does not match its hash.", fix="Restore it from a backup.")
