"""The seam of bytes that are addressed by their content."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Blob:
    sha256: str
    size: int
    media_type: str = "application/octet-stream"


class Blobs(Protocol):
    """Who has put the bytes there may read them, and nobody else: knowing their hash is not enough."""

    async def put(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        """Stores by content; the same bytes again are the same blob. Durable with the next commit that names it."""
        ...

    async def upload(self, data: bytes, media_type: str, *, quota: int = 0) -> Blob:
        """The same for what a person gives, fsynced. Raises LimitReached when all that they gave would be more bytes than `quota`.

        0 = as much as the disk takes. What was given before is not counted twice, and keeps the type of then.
        """
        ...

    async def put_all(self, pieces: Sequence[bytes], media_type: str = "application/octet-stream") -> list[Blob]:
        """The same for several in one transaction, in their order."""
        ...

    async def put_from(self, pieces: AsyncIterable[bytes], media_type: str = "application/octet-stream") -> Blob:
        """The same for what comes in pieces and may be large: one of them is held at a time."""
        ...

    async def about(self, sha256: str) -> Blob:
        """Size and type. Raises NotFound."""
        ...

    async def get(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Raises NotFound; StoreCorrupt when the bytes no longer have that hash."""
        ...
