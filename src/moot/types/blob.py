"""Blobs: bytes that are addressed by their hash."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from moot.types.canonical import Json


@dataclass(frozen=True, slots=True)
class Blob:
    sha256: str
    size: int
    """Size in bytes."""
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class StagedBlobs:
    """Blobs that the store stores together with a change that refers to them. Large ones are already stored."""

    blobs: tuple[Blob, ...]
    small: Mapping[str, bytes]
    """Hash → content of each blob that is not stored yet."""

    @property
    def hashes(self) -> list[Json]:
        """The hashes of the blobs, in order."""
        return [blob.sha256 for blob in self.blobs]


class Blobs(Protocol):
    """A content-addressed store. An owner can read only blobs that this owner has stored; knowing the hash is not enough."""

    async def put(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        """Store bytes and return a blob, which becomes durable with the next commit that refers to it. Equal bytes give the same blob."""
        ...

    async def upload(self, data: bytes, media_type: str, *, quota: int = 0) -> Blob:
        """Store a person's upload durably. Raise LimitReached if the owner's uploads would exceed `quota` bytes; 0 = no quota.

        Repeated uploads of the same bytes count only once and keep the first media type.
        """
        ...

    async def put_all(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> list[Blob]:
        """Store several blobs in one transaction and return them in order."""
        ...

    async def stage(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> StagedBlobs:
        """Prepare several blobs for a change that stores them, such as `OpenExchange`. Until then, small ones can't be read."""
        ...

    async def put_from(self, pieces: AsyncIterable[bytes], media_type: str = "application/octet-stream") -> Blob:
        """Store a blob that arrives in pieces; only one piece is in memory at a time."""
        ...

    async def about(self, sha256: str) -> Blob:
        """Return a blob's size and media type. Raise NotFound if the owner has no such blob."""
        ...

    async def get(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Return the bytes of a blob. Raise NotFound if there is no such blob, StoreCorrupt if the bytes don't match the hash."""
        ...
