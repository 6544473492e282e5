"""The interfaces of storage maintenance: backups, purges and redactions, scans, sealing and sizes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.limits import Retention

ReportProgress: TypeAlias = Callable[[str], None]
"""Callback for progress messages; may be called any number of times."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The description of a completely read backup."""

    path: str
    made_at: int
    """Time of the backup, in milliseconds since the epoch."""
    program: str
    """The moot version that wrote it."""
    schema: int
    files: int
    size: int
    """Total size of the files in the backup, in bytes."""
    packed: int
    """Size of the backup file, in bytes."""
    has_secrets: bool
    """True if the configuration is included unchanged, with its API keys."""

    def to_json(self) -> JsonObject:
        return {
            "path": self.path,
            "made_at": self.made_at,
            "program": self.program,
            "schema": self.schema,
            "files": self.files,
            "bytes": self.size,
            "packed_bytes": self.packed,
            "has_secrets": self.has_secrets,
        }


class Backups(Protocol):
    """The creation of backups while the store is in use. Reading a backup requires no store (see `moot.store.maintenance.backup`)."""

    async def back_up(self, to: Path, *, secrets: bool = False, tell: ReportProgress | None = None) -> Backup:
        """Back up the whole home from one snapshot to a new file. If `to` is a folder, the file is created in it.

        The file is read again and compared before it gets its final name. The store remembers the path so that purges reach the backup.
        Raise UsageError or StoreFull, or Busy if another process is purging.
        """
        ...


REDACTION_MARK = "[redacted]"
"""Replacement for a redacted string."""

NOT_SEARCHED = (
    "compressed, encrypted or rendered content: archives, PDF, images, audio",
    "base64 in base64, hexadecimal, quoted-printable",
    "copies of files of other machines, in data/hosts",
)
"""Data that a redaction does not search."""

CopyKind: TypeAlias = Literal["backup", "export"]


@dataclass(frozen=True, slots=True)
class Secret:
    """The strings and patterns to redact."""

    strings: tuple[str, ...] = ()
    """Literal strings. Their JSON-escaped, percent-encoded and base64 forms match too."""
    patterns: tuple[str, ...] = ()
    """Regular expressions; every repetition must be bounded."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The outcome of a purge or redaction for a file outside the database."""

    path: str
    what: Literal["deleted", "rewritten", "left", "not reached"]
    why: str = ""

    def to_json(self) -> JsonObject:
        return {"path": self.path, "what": self.what, "why": self.why or None}


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """A file with a copy of store contents: a backup or an export."""

    path: str
    kind: CopyKind
    made_at: int
    """Time of the copy, in milliseconds since the epoch."""
    size: int
    conversation: str | None = None
    """Id of the only conversation in it; None = all conversations."""


@dataclass(slots=True)
class ErasureReceipt:
    """The receipt of one purge or redaction. It is stored, and reports only what has been done."""

    kind: Literal["purge", "redact"]
    no: int = 0
    begun_at: int = 0
    """Time of the start, in milliseconds since the epoch."""
    done_at: int | None = None
    """Time of the end, in milliseconds since the epoch; None = unfinished, and resumed automatically."""
    conversations: list[str] = field(default_factory=list[str])
    """Ids of the purged conversations, or of those with redacted content."""
    rows: dict[str, int] = field(default_factory=dict[str, int])
    """Number of deleted or changed rows by table."""
    blobs: int = 0
    blob_bytes: int = 0
    files: list[FileOutcome] = field(default_factory=list[FileOutcome])
    left: list[str] = field(default_factory=list[str])
    """Descriptions of data that was not reached, with the reason."""
    unseen: list[str] = field(default_factory=list[str])
    """Descriptions of data that a redaction did not search."""
    bytes_before: int = 0
    """Size of the database before the operation, in bytes."""
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


class Erasure(Protocol):
    """Permanent deletion, done by only one process at a time. `finish` resumes deletions that a crash interrupted."""

    @property
    def backups(self) -> Backups:
        """Backups of the whole home, which later purges and redactions update."""
        ...

    @property
    def scanner(self) -> Scanner:
        """The search for secrets to redact."""
        ...

    async def purge(
        self, conversations: Sequence[str], *, dry_run: bool = False, temporary: bool = False, tell: ReportProgress | None = None
    ) -> ErasureReceipt:
        """Purge the conversations with these ids, their sub-conversations and all their data. With `temporary`, leave out those that are
        kept.

        Raise NotFound if an id is unknown, Busy if one of their runs is active or a machine that they come from is being synchronized.
        """
        ...

    async def redact(
        self, secret: Secret, *, conversation: str | None = None, dry_run: bool = False, tell: ReportProgress | None = None
    ) -> ErasureReceipt:
        """Redact the strings in the whole store, or in one conversation and its sub-conversations.

        Raise UsageError if `secret` can't be searched for, NotFound if there is no such conversation.
        """
        ...

    async def expire(
        self, rules: Retention, *, dry_run: bool = False, tell: ReportProgress | None = None
    ) -> tuple[list[Expiry], ErasureReceipt | None]:
        """Apply the retention rules, or with `dry_run` only list what has expired. The receipt is None if nothing was purged."""
        ...

    async def finish(self) -> list[ErasureReceipt]:
        """Resume interrupted purges and redactions, unless another process is doing so.

        If a task of this process is doing so, wait for that task.
        """
        ...

    async def register_files(self, files: Sequence[StoredCopy]) -> None:
        """Remember export files. Purge receipts list these files, and their owner must delete them."""
        ...

    async def receipts(self, *, limit: int = 50) -> list[ErasureReceipt]:
        """Return receipts, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class ScanScope:
    """A selection of data to scan; by default, everything."""

    conversation: str | None = None
    """Id of a conversation, which is scanned with the conversations of its sub-agents."""
    project: str = ""
    """Project id; empty = all projects."""
    agent: str = ""
    """Name of the agent, or format of an import; empty = all agents."""
    since: int = 0
    """Time in ms. Conversations without activity since then are not scanned."""


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """A place where a secret is stored."""

    what: str
    """For example `text`, `output of shell`, `raw data` or `attachment`."""
    conversation: str | None = None
    title: str = ""
    message: str | None = None
    role: str = ""
    part: int | None = None
    """Index of the message's part."""
    at: int | None = None
    """Time in ms."""
    file: str = ""
    """Path of a file next to the database."""

    def to_json(self) -> JsonObject:
        names = ("what", "conversation", "title", "message", "role", "part", "at", "file")
        return {name: value for name in names if (value := getattr(self, name)) not in (None, "")}


LISTED_PLACES = 1000
"""Maximum number of places that are listed for one secret. The others are counted."""


@dataclass(slots=True)
class SecretFinding:
    """One secret, with all the places where it is stored."""

    fingerprint: str
    """A hash of the secret with a key of this store. It reveals nothing about the secret."""
    kind: str
    masked: str
    """The first and last letters of the secret, if it is long."""
    count: int = 0
    """Number of occurrences."""
    places: dict[SecretPlace, None] = field(default_factory=dict[SecretPlace, None])
    """The places in the order in which they were found."""
    unlisted: int = 0
    """Number of occurrences in further places."""
    strings: set[str] = field(default_factory=set[str], repr=False)
    """The secret in all its spellings. Must not be shown or stored."""

    def to_json(self) -> JsonObject:
        return {
            "fingerprint": self.fingerprint,
            "kind": self.kind,
            "masked": self.masked,
            "count": self.count,
            "places": list[Json]([place.to_json() for place in self.places]),
            "unlisted": self.unlisted,
        }


@dataclass(slots=True)
class ScanReport:
    """The progress of a scan, and at its end the result."""

    conversations: int = 0
    """Number of conversations scanned so far, including unchanged ones."""
    unchanged: int = 0
    """Number of conversations that were skipped, because an earlier scan found nothing in them and they have not changed."""
    bytes: int = 0
    """Size of the scanned data."""
    findings: dict[str, SecretFinding] = field(default_factory=dict[str, SecretFinding])
    """Findings by fingerprint."""
    problems: list[str] = field(default_factory=list[str])
    """Descriptions of damaged or missing data, which could not be searched."""

    def to_json(self) -> JsonObject:
        return {
            "conversations": self.conversations,
            "unchanged": self.unchanged,
            "bytes": self.bytes,
            "data": list[Json]([finding.to_json() for finding in self.findings.values()]),
            "problems": list[Json](self.problems),
        }


class Scanner(Protocol):
    """The search for secrets in everything that is stored."""

    def scan(self, scope: ScanScope = ..., *, unchanged: bool = False) -> AsyncGenerator[ScanReport, None]:
        """Scan and yield the progress: always the same object, which is updated.

        Its final state is the result. Raise NotFound if there is no such conversation.

        Conversations in which an earlier scan found nothing are skipped if they have not changed since, unless `unchanged` is set.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sealed:
    """Progress of sealing, which moves old events from rows to compressed segments."""

    conversations: int = 0
    """Number of conversations that had events to seal."""
    events: int = 0
    before: int = 0
    """Size of the sealed events as rows, in bytes."""
    after: int = 0
    """Size of their segments, including the index, in bytes."""

    def to_json(self) -> JsonObject:
        return {"conversations": self.conversations, "events": self.events, "bytes_before": self.before, "bytes_after": self.after}


@dataclass(frozen=True, slots=True)
class Extent:
    """Sizes of a group of events stored in the same form."""

    events: int = 0
    bytes: int = 0
    """Size of the events' content."""
    stored: int = 0
    """Size of the events as stored."""

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
    """Size of the unused pages in the database file, which new data fills first."""
    gives_back: bool
    """True if the database file can shrink without a complete rewrite."""
    rows: Extent
    sealed: Extent
    segments: int
    frames: int
    raw: int
    """Size of the vendors' bytes in rows."""
    messages: int
    index: int
    """Size of the search index."""
    requests: int
    """Size of the request manifests; their pieces are blobs."""
    blobs: int
    blobs_inside: int
    """Size of the blobs in the database; the other blobs are files."""
    checkpoints: int
    """Size of the separate database with earlier file contents, for undo."""
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
            "checkpoints_bytes": self.checkpoints,
            "largest": list[Json]([one.to_json() for one in self.largest]),
        }


class Upkeep(Protocol):
    """Storage maintenance, done by one process at a time."""

    def seal(
        self, *, quiet: float = 0.0, seconds: float | None = None, share: float = 1.0, conversation: str | None = None, dry: bool = False
    ) -> AsyncGenerator[Sealed, None]:
        """Seal conversations that have been inactive for `quiet` seconds, yielding the progress after each segment.

        Stop after `seconds` seconds, or at once if another process is sealing. Use at most `share` of the time. With `dry`, only count.
        """
        ...

    def give_back(self, *, keep: int = 0, share: float = 1.0) -> AsyncGenerator[int, None]:
        """Remove free pages from the file until `keep` bytes of them are left. Yield the number of bytes still to remove."""
        ...

    async def rewrite(self, tell: ReportProgress) -> None:
        """Rewrite the whole database, so that no old data remains in free pages.

        Other writers wait meanwhile. Raise StoreFull if there is not enough disk space.
        """
        ...

    async def sizes(self, *, largest: int = 10, owner: str | None = None) -> Sizes:
        """Return storage sizes, and those of the largest conversations: at most `largest` of them, optionally only one owner's."""
        ...
