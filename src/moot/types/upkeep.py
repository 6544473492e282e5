"""The seam of what keeps a store small: sealing what is over, giving free pages back, saying what takes how much."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from moot.types.backup import Tell
from moot.types.canonical import Json, JsonObject

__all__ = ["ConversationSize", "Extent", "Sealed", "Sizes", "Upkeep"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """How far sealing has come."""

    conversations: int = 0
    """With something to seal, looked at."""
    events: int = 0
    before: int = 0
    """Bytes of the sealed events, as they were rows."""
    after: int = 0
    """Bytes of their segments, index included."""

    def to_json(self) -> JsonObject:
        return {"conversations": self.conversations, "events": self.events, "bytes_before": self.before, "bytes_after": self.after}


@dataclass(frozen=True, slots=True)
class Extent:
    """Events that lie together in one form."""

    events: int = 0
    """Bytes of what they say."""
    bytes: int = 0
    stored: int = 0
    """Bytes that it takes."""

    def to_json(self) -> JsonObject:
        return {"events": self.events, "bytes": self.bytes, "stored_bytes": self.stored}


@dataclass(frozen=True, slots=True)
class ConversationSize:
    """What one conversation's log takes."""

    id: str
    title: str
    rows: Extent
    sealed: Extent

    def to_json(self) -> JsonObject:
        return {"id": self.id, "title": self.title, "rows": self.rows.to_json(), "segments": self.sealed.to_json()}


@dataclass(frozen=True, slots=True)
class Sizes:
    """What takes how much, in bytes."""

    database: int
    """Pages of the file."""
    free: int
    """Pages of it that nothing lies in: what comes next is written there."""
    gives_back: bool
    """Whether the file can become smaller without being written anew as a whole."""
    rows: Extent
    sealed: Extent
    segments: int
    frames: int
    raw: int
    """Of rows: what vendors sent."""
    messages: int
    index: int
    """What search takes."""
    requests: int
    """Manifests of what was sent; their pieces are blobs."""
    blobs: int
    blobs_inside: int
    """Of those, bytes in the database; the others are files."""
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
    """One process at a time keeps a store."""

    def seal(
        self, *, quiet: float = 0.0, seconds: float | None = None, share: float = 1.0, conversation: str | None = None, dry: bool = False
    ) -> AsyncGenerator[Sealed, None]:
        """Seals what may be in conversations in which nothing was said for `quiet` seconds, and says after each segment how far it has
        come; ends early when `seconds` are over, and at once when another process does it. Of the time it takes at most that `share`.
        `dry` counts what there is to seal, and seals nothing."""
        ...

    def give_back(self, *, keep: int = 0, share: float = 1.0) -> AsyncGenerator[int, None]:
        """Makes the file smaller by its free pages but for `keep` bytes, in short transactions; the bytes that are left to give back."""
        ...

    async def write_anew(self, tell: Tell) -> None:
        """Writes the whole database anew: nothing is left in pages that are free. Nobody else writes meanwhile. Raises StoreFull."""
        ...

    async def sizes(self, *, largest: int = 10, owner: str | None = None) -> Sizes:
        """All that is stored, and so many of the conversations, of that owner alone if one is named, that take most."""
        ...
