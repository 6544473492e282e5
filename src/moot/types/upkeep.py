"""The seam of storage maintenance: sealing old events, returning free pages and reporting sizes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from moot.types.backup import Tell
from moot.types.canonical import Json, JsonObject

__all__ = ["ConversationSize", "Extent", "Sealed", "Sizes", "Upkeep"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """Progress of sealing."""

    conversations: int = 0
    """Number of conversations that had something to seal."""
    events: int = 0
    before: int = 0
    """Bytes of the sealed events as rows."""
    after: int = 0
    """Bytes of their segments, including the index."""

    def to_json(self) -> JsonObject:
        return {"conversations": self.conversations, "events": self.events, "bytes_before": self.before, "bytes_after": self.after}


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of a group of events stored in the same form."""

    events: int = 0
    bytes: int = 0
    """Size of the content."""
    stored: int = 0
    """Space that it takes."""

    def to_json(self) -> JsonObject:
        return {"events": self.events, "bytes": self.bytes, "stored_bytes": self.stored}


@dataclass(frozen=True, slots=True)
class ConversationSize:
    """Storage size of one conversation's log."""

    id: str
    title: str
    rows: Extent
    sealed: Extent

    def to_json(self) -> JsonObject:
        return {"id": self.id, "title": self.title, "rows": self.rows.to_json(), "segments": self.sealed.to_json()}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Storage sizes in bytes."""

    database: int
    """Size of the database file."""
    free: int
    """Unused pages in it, which new data fills first."""
    gives_back: bool
    """True if the file can shrink without a complete rewrite."""
    rows: Extent
    sealed: Extent
    segments: int
    frames: int
    raw: int
    """Bytes from vendors in rows."""
    messages: int
    index: int
    """Size of the search index."""
    requests: int
    """Request manifests; their pieces are blobs."""
    blobs: int
    blobs_inside: int
    """Bytes of blobs in the database; the others are files."""
    largest: tuple[ConversationSize, ...]

    def to_json(self) -> JsonObject:
        return {
            "database_bytes": self.database,
            "free_bytes": self.free,
            "gives_back": self.gives_back,
            "rows": {**self.rows.to_json(), "raw_bytes": self.raw},
            "segments": {**self.sealed.to_json(), "count": self.segments, "frames": self.frames},
            "messages_bytes": self.messages,
            "index_bytes": self.index,
            "requests_bytes": self.requests,
            "blobs": {"bytes": self.blobs, "inside_bytes": self.blobs_inside},
            "largest": list[Json]([one.to_json() for one in self.largest]),
        }


class Upkeep(Protocol):
    """Storage maintenance; one process at a time does it."""

    def seal(
        self, *, quiet: float = 0.0, seconds: float | None = None, share: float = 1.0, conversation: str | None = None, dry: bool = False
    ) -> AsyncGenerator[Sealed, None]:
        """Seal conversations without activity for `quiet` seconds, yielding the progress after each segment.

        End early after `seconds`, or at once if another process is sealing. Use at most `share` of the time. With `dry`, only count.
        """
        ...

    def give_back(self, *, keep: int = 0, share: float = 1.0) -> AsyncGenerator[int, None]:
        """Shrink the file by its free pages, except `keep` bytes, in short transactions; yield the bytes that remain to be returned."""
        ...

    async def rewrite(self, tell: Tell) -> None:
        """Rewrite the whole database, so that no old data remains in free pages. Other writers wait. Raise StoreFull."""
        ...

    async def sizes(self, *, largest: int = 10, owner: str | None = None) -> Sizes:
        """Return storage sizes and the `largest` conversations, optionally those of one owner."""
        ...
