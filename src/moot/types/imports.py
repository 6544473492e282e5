"""The seam of what was brought in from other programs: bounded pieces of conversations, and what of a source is known already."""

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
    """A source as it was when it was last read to its end."""

    format: str
    version: int
    path: str
    size: int
    modified_at: int
    """ns; with size and inode it tells whether anything was written since."""
    inode: int
    conversations: int = 0
    problems: int = 0
    read_at: int = 0
    """ms; only the store sets it."""

    def same(self, other: SourceMark) -> bool:
        """Whether the same reader would find the same bytes."""
        return (self.version, self.size, self.modified_at, self.inode) == (other.version, other.size, other.modified_at, other.inode)


@dataclass(frozen=True, slots=True)
class Arriving:
    """A conversation of a source, on its way in."""

    format: str
    version: int
    source_id: str
    conversation: Conversation
    """As it is to be made when it isn't here yet: a new id, and the beginning of its `origin`."""
    parent: str | None = None
    """The `source_id` of the conversation that it is a part of."""
    parent_call: str | None = None
    resumable: bool = False
    """Whether `source_id` is of an agent's session that runs of ours may have made: then all of it is here already."""


@dataclass(frozen=True, slots=True)
class Received:
    """Where what arrives goes."""

    id: str
    is_new: bool = False
    closed: bool = False
    """Nothing is added: a person has deleted it, it was brought in whole, or it is the session of a run of ours."""
    version: int = 0
    """Of the format that last read it to its end; 0 = none has."""


class Arrival(NamedTuple):
    """A message or record of a source on its way into the store: what it is known by again, and its JSON as it is stored."""

    key: bytes
    digest: bytes
    """Of its raw."""
    raw: Raw
    body: bytes
    """Of the event of a record; empty for a message, whose body is put together once its ids are known."""
    problem: str = ""
    """What is wrong with the record; empty = nothing is."""
    role: Role | None = None
    """None = a record that is no message, and nothing of what follows."""
    parts: bytes = b""
    metadata: bytes = b""
    parent: bytes | None = None
    """Key of the message that it hangs on; None = a first one."""
    created_at: int = 0
    """ms since the epoch; 0 = the source does not say."""
    usage: Usage = NO_USAGE
    cost: int | None = None
    unpriced: bool = False
    """It took something, and nobody knows what that cost."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of entries; each is counted once."""

    added: int = 0
    grown: int = 0
    """Messages that the source has written on."""
    rewritten: int = 0
    """Messages that the source now tells differently: each has a new sibling."""
    records: int = 0
    known: int = 0
    loose: int = 0
    """Messages whose parent is not there: they hang on nothing."""

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
        """Whether anything was stored."""
        return bool(self.added or self.grown or self.rewritten or self.records)


@dataclass(frozen=True, slots=True)
class Settled:
    """What a source says of a conversation once all of it was read; what is empty changes nothing."""

    version: int
    head: bytes | None = None
    """Key of the message that the source's branch ends with."""
    title: str = ""
    title_source: Literal["first-line", "model"] = "model"
    model: str = ""
    created_at: int = 0
    updated_at: int = 0
    archived: bool = False
    origin: JsonObject = field(default_factory=empty)
    """Lies over what its `origin` says."""


class Imports(Protocol):
    """What was brought in from elsewhere."""

    async def find(self, format: str, source_id: str) -> Conversation | None:
        """What an earlier import made of that source; None when there is nothing, or it was purged."""
        ...

    async def add(self, recording: Recording) -> Conversation:
        """Stores a recording whose ids are all new, in one transaction, fsynced: its runs are over and nobody owns them.

        Raises Busy for an id that is taken.
        """
        ...

    async def receive(self, arriving: Arriving, *, dry_run: bool = False) -> Received:
        """Finds or makes the conversation; it hangs on its parent's as soon as both are here. A dry run makes none."""
        ...

    async def take(self, received: Received, arrivals: Sequence[Arrival], *, anew: bool = False, dry_run: bool = False) -> Taken:
        """Adds what is not known yet, in one short transaction: a message and what it hangs on must come in that order, now or earlier.

        The shown branch follows while nobody but an import has moved it. `anew`: known messages are compared too, another version has
        read them.
        """
        ...

    async def settle(self, received: Received, settled: Settled) -> Conversation:
        """The conversation, once all of it was read. Not fsynced, as nothing of an import: what a loss of power takes is read again."""
        ...

    async def mark(self, format: str, path: str) -> SourceMark | None:
        """As the source was when it was last read to its end."""
        ...

    async def remember(self, mark: SourceMark) -> None:
        """That the source was read to its end."""
        ...

    async def exported(self, path: str) -> int | None:
        """Bytes of the export of a conversation that was written there; None = none was, as far as is known."""
        ...

    async def counts(self) -> dict[str, int]:
        """Format → how many conversations of it are here."""
        ...
