"""The seam of forgetting: what is purged or redacted for good, and the receipt that says what went where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.types.backup import BackingUp, Tell
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.retention import Retention

__all__ = [
    "MARK",
    "UNSEEN",
    "CopyKind",
    "Expiry",
    "FileFate",
    "Forgetting",
    "Forgotten",
    "KeptCopy",
    "Secret",
    "Tell",
]

MARK = "[redacted]"
"""Stands where a string was taken out."""

UNSEEN = (
    "what is compressed, encrypted or drawn: archives, PDF, pictures, sound",
    "base64 in base64, hexadecimal, quoted-printable",
)
"""Where a redaction does not look."""

CopyKind: TypeAlias = Literal["backup", "export"]


@dataclass(frozen=True, slots=True)
class Secret:
    """What is to be redacted."""

    strings: tuple[str, ...] = ()
    """Each as it is, in any of its spellings: escaped in JSON, in percent signs, in base64."""
    patterns: tuple[str, ...] = ()
    """Regular expressions in which every repetition is bounded."""


@dataclass(frozen=True, slots=True)
class FileFate:
    """What became of a file beside the database."""

    path: str
    what: Literal["deleted", "rewritten", "left", "not reached"]
    why: str = ""

    def to_json(self) -> JsonObject:
        return {"path": self.path, "what": self.what, "why": self.why or None}


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A file that holds what the store held when it was written."""

    path: str
    kind: CopyKind
    made_at: int
    """ms"""
    size: int
    conversation: str | None = None
    """The only one that is in it; None = all."""


def _files() -> list[FileFate]:
    return []


@dataclass(slots=True)
class Forgotten:
    """The receipt of one purge or redaction; it is stored, and never says more than what has happened."""

    kind: Literal["purge", "redact"]
    no: int = 0
    begun_at: int = 0
    """ms"""
    done_at: int | None = None
    """None = something is still to be done; it is gone on with by itself."""
    conversations: list[str] = field(default_factory=list[str])
    """Ids: those that were purged, or in which something was redacted."""
    rows: dict[str, int] = field(default_factory=dict[str, int])
    """By table: rows that went, or were changed."""
    blobs: int = 0
    blob_bytes: int = 0
    files: list[FileFate] = field(default_factory=_files)
    left: list[str] = field(default_factory=list[str])
    """What was not reached, and why, in words."""
    unseen: list[str] = field(default_factory=list[str])
    """Where a redaction did not look, in words."""
    bytes_before: int = 0
    """Of the database."""
    bytes_after: int = 0

    def to_json(self) -> JsonObject:
        return {
            "no": self.no,
            "kind": self.kind,
            "begun_at": self.begun_at,
            "done_at": self.done_at,
            "conversations": list[Json](self.conversations),
            "rows": dict[str, Json](self.rows),
            "blobs": self.blobs,
            "blob_bytes": self.blob_bytes,
            "files": list[Json]([file.to_json() for file in self.files]),
            "left": list[Json](self.left),
            "not_looked_into": list[Json](self.unseen),
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
        }


@dataclass(frozen=True, slots=True)
class Expiry:
    """A conversation whose time is over, and what happens to it."""

    conversation: Conversation
    what: Literal["delete", "purge"]
    why: str


class Forgetting(Protocol):
    """Taking away for good. One process at a time; what a crash cut off is gone on with by `finish`."""

    @property
    def backups(self) -> BackingUp:
        """Copies of everything, which purges and redactions then reach."""
        ...

    async def purge(self, conversations: Sequence[str], *, dry_run: bool = False, tell: Tell | None = None) -> Forgotten:
        """Those, by their ids, and their sub-conversations, with all that hangs on them. Raises NotFound; Busy for a run at work."""
        ...

    async def redact(
        self, secret: Secret, *, conversation: str | None = None, dry_run: bool = False, tell: Tell | None = None
    ) -> Forgotten:
        """Takes the strings out of everything, or of one conversation and its sub-conversations. Raises UsageError, NotFound."""
        ...

    async def expire(self, rules: Retention, *, dry_run: bool = False, tell: Tell | None = None) -> tuple[list[Expiry], Forgotten | None]:
        """What the rules say is over, done or with `dry_run` only told; None = nothing was purged."""
        ...

    async def finish(self) -> list[Forgotten]:
        """Goes on with what was cut off, unless another process is at it."""
        ...

    async def wrote(self, files: Sequence[KeptCopy]) -> None:
        """Keeps exports in mind: the receipt of a purge names them, and leaves them to whoever made them."""
        ...

    async def receipts(self, *, limit: int = 50) -> list[Forgotten]:
        """The newest first."""
        ...
