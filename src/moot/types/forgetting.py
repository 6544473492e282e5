"""Purging and redacting data permanently, and the receipts of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.types.backup import BackingUp, Tell
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.retention import Retention

__all__ = ["MARK", "UNSEEN", "CopyKind", "Expiry", "FileFate", "Forgetting", "Forgotten", "KeptCopy", "Secret", "Tell"]

MARK = "[redacted]"
"""Replacement for a redacted string."""

UNSEEN = ("compressed, encrypted or rendered content: archives, PDF, images, audio", "base64 in base64, hexadecimal, quoted-printable")
"""Places that a redaction does not search."""

CopyKind: TypeAlias = Literal["backup", "export"]


@dataclass(frozen=True, slots=True)
class Secret:
    """The strings and patterns to redact."""

    strings: tuple[str, ...] = ()
    """Literal strings. Their JSON-escaped, percent-encoded and base64 forms match too."""
    patterns: tuple[str, ...] = ()
    """Regular expressions; every repetition must be bounded."""


@dataclass(frozen=True, slots=True)
class FileFate:
    """The outcome for a file outside the database."""

    path: str
    what: Literal["deleted", "rewritten", "left", "not reached"]
    why: str = ""

    def to_json(self) -> JsonObject:
        return {"path": self.path, "what": self.what, "why": self.why or None}


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A file with a copy of store contents: a backup or an export."""

    path: str
    kind: CopyKind
    made_at: int
    """ms"""
    size: int
    conversation: str | None = None
    """The only conversation in it; None = all conversations."""


def _files() -> list[FileFate]:
    return []


@dataclass(slots=True)
class Forgotten:
    """The receipt of one purge or redaction. It is stored, and reports only what has been done."""

    kind: Literal["purge", "redact"]
    no: int = 0
    begun_at: int = 0
    """ms"""
    done_at: int | None = None
    """None = unfinished; it is resumed automatically."""
    conversations: list[str] = field(default_factory=list[str])
    """Ids of the purged conversations, or of those with redacted content."""
    rows: dict[str, int] = field(default_factory=dict[str, int])
    """Number of deleted or changed rows by table."""
    blobs: int = 0
    blob_bytes: int = 0
    files: list[FileFate] = field(default_factory=_files)
    left: list[str] = field(default_factory=list[str])
    """Descriptions of what was not reached, and why."""
    unseen: list[str] = field(default_factory=list[str])
    """Descriptions of what a redaction did not search."""
    bytes_before: int = 0
    """Size of the database."""
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
    """An expired conversation and what happens to it."""

    conversation: Conversation
    what: Literal["delete", "purge"]
    why: str


class Forgetting(Protocol):
    """Permanent deletion. Only one process at a time does it; `finish` resumes what a crash interrupted."""

    @property
    def backups(self) -> BackingUp:
        """Backups of the whole home, which later purges and redactions reach."""
        ...

    async def purge(self, conversations: Sequence[str], *, dry_run: bool = False, tell: Tell | None = None) -> Forgotten:
        """Purge the conversations with these ids, their sub-conversations and all their data. Raise NotFound, or Busy for an active run."""
        ...

    async def redact(
        self, secret: Secret, *, conversation: str | None = None, dry_run: bool = False, tell: Tell | None = None
    ) -> Forgotten:
        """Redact in the whole store, or in one conversation and its sub-conversations. Raise UsageError or NotFound."""
        ...

    async def expire(self, rules: Retention, *, dry_run: bool = False, tell: Tell | None = None) -> tuple[list[Expiry], Forgotten | None]:
        """Apply the retention rules, or with `dry_run` only list what has expired. The receipt is None if nothing was purged."""
        ...

    async def finish(self) -> list[Forgotten]:
        """Resume interrupted purges and redactions, unless another process is doing it."""
        ...

    async def register_files(self, files: Sequence[KeptCopy]) -> None:
        """Remember export files. The receipt of a purge names them; deleting them is up to their owner."""
        ...

    async def receipts(self, *, limit: int = 50) -> list[Forgotten]:
        """Return receipts, newest first."""
        ...
