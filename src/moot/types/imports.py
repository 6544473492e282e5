"""The seam of imports: conversations of other programs arrive in bounded batches, and known sources are remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from moot.types.canonical import JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.event import Raw
from moot.types.message import Role
from moot.types.recording import Recording
from moot.types.usage import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class SourceMark:
    """The state of a source when it was last read completely."""

    format: str
    version: int
    path: str
    size: int
    modified_at: int
    """ns; together with size and inode it shows if the source has changed."""
    inode: int
    conversations: int = 0
    problems: int = 0
    read_at: int = 0
    """ms; set by the store."""

    def same(self, other: SourceMark) -> bool:
        """Return True if the same reader would find the same bytes."""
        return (self.version, self.size, self.modified_at, self.inode) == (other.version, other.size, other.modified_at, other.inode)


@dataclass(frozen=True, slots=True)
class Arriving:
    """A conversation of a source that is about to be imported."""

    format: str
    version: int
    source_id: str
    conversation: Conversation
    """The conversation to create if it isn't stored yet, with a new id and the initial `origin`."""
    parent: str | None = None
    """The `source_id` of the parent conversation."""
    parent_call: str | None = None
    resumable: bool = False
    """True if `source_id` is an agent's session id, so that one of our own runs may have created it; its content is then already stored."""


@dataclass(frozen=True, slots=True)
class Received:
    """The conversation that an import writes to."""

    id: str
    is_new: bool = False
    closed: bool = False
    """Nothing can be added: a person deleted it, it is a complete recording, or it is the session of one of our runs."""
    version: int = 0
    """Version of the format that last read it completely; 0 = none."""


class Arrival(NamedTuple):
    """A message or record to import: its identity, and its JSON in stored form."""

    key: bytes
    digest: bytes
    """Digest of its raw."""
    raw: Raw
    body: bytes
    """Event body of a record. Empty for a message, whose body is built once its ids are known."""
    problem: str = ""
    """Description of what is wrong with the record; empty = nothing."""
    role: Role | None = None
    """None = a record; the fields below are then unused."""
    parts: bytes = b""
    metadata: bytes = b""
    parent: bytes | None = None
    """Key of the parent message; None = a root message."""
    created_at: int = 0
    """ms since the epoch; 0 = unknown."""
    usage: Usage = NO_USAGE
    cost: int | None = None
    unpriced: bool = False
    """It used tokens, but their cost is unknown."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The number of entries by outcome; each is counted once."""

    added: int = 0
    grown: int = 0
    """Messages to which the source has appended."""
    rewritten: int = 0
    """Messages that changed in the source: each has a new sibling."""
    records: int = 0
    known: int = 0
    loose: int = 0
    """Messages whose parent is missing; they become roots."""

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.added + other.added,
            self.grown + other.grown,
            self.rewritten + other.rewritten,
            self.records + other.records,
            self.known + other.known,
            self.loose + other.loose,
        )

    @property
    def changed(self) -> bool:
        """True if anything was stored."""
        return bool(self.added or self.grown or self.rewritten or self.records)


@dataclass(frozen=True, slots=True)
class Settled:
    """Facts about a conversation once its source was read completely; empty fields change nothing."""

    version: int
    head: bytes | None = None
    """Key of the last message of the source's branch."""
    title: str = ""
    title_source: Literal["first-line", "model"] = "model"
    model: str = ""
    created_at: int = 0
    updated_at: int = 0
    archived: bool = False
    origin: JsonObject = field(default_factory=empty)
    """Fields that are merged into the conversation's `origin`."""


class Imports(Protocol):
    """Imported conversations and the sources they came from."""

    async def find(self, format: str, source_id: str) -> Conversation | None:
        """Return the conversation imported from that source, or None if there is none or it was purged."""
        ...

    async def add(self, recording: Recording) -> Conversation:
        """Store a recording whose ids are all new, in one durable transaction. Its runs have ended and have no owner.

        Raise Busy if an id exists already.
        """
        ...

    async def receive(self, arriving: Arriving, *, dry_run: bool = False) -> Received:
        """Find or create the conversation, and link it to its parent once both are stored. A dry run creates nothing."""
        ...

    async def take(self, received: Received, arrivals: Sequence[Arrival], *, compare: bool = False, dry_run: bool = False) -> Taken:
        """Add the entries that are not known yet, in one short transaction. A parent must be in this batch before its children, or stored.

        The shown branch follows as long as only imports have moved it. With `compare`, known messages are compared too, because another
        version of the format has read them.
        """
        ...

    async def settle(self, received: Received, settled: Settled) -> Conversation:
        """Apply the final facts and return the conversation. Not fsynced, like all of an import: after a power loss it is read again."""
        ...

    async def mark(self, format: str, path: str) -> SourceMark | None:
        """Return the state of the source when it was last read completely."""
        ...

    async def remember(self, mark: SourceMark) -> None:
        """Remember that the source was read completely."""
        ...

    async def exported(self, path: str) -> int | None:
        """Return the size of the export that was written to that path, or None if none is known."""
        ...

    async def counts(self) -> dict[str, int]:
        """Return the number of conversations by format."""
        ...
