"""The interface for importing complete recordings, and conversations that arrive in batches of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from operator import add
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from moot.types.canonical import JsonObject, empty
from moot.types.conversation import Conversation, Project
from moot.types.event import Event, Raw
from moot.types.exchange import Exchange
from moot.types.format import ExportFile, Fidelity
from moot.types.message import Message, Role
from moot.types.run import Run
from moot.types.usage import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that the recording refers to by their hash."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A conversation with everything its runs sent and received; sufficient to recreate it."""

    source_id: str
    """Id that is the same in every import of the same source, so that a second import finds the first."""
    conversation: Conversation
    """The conversation, with the id from the source. All other ids are from the source too."""
    messages: tuple[Message, ...]
    """The messages in storage order, with the positions of their events."""
    runs: tuple[Run, ...]
    """The runs, oldest first; all have ended."""
    exchanges: tuple[Exchange, ...]
    events: tuple[Event, ...]
    """The complete log: seqs from 1 without gaps."""
    deleted: frozenset[str] = frozenset()
    """Ids of hidden messages."""
    contents: Mapping[str, Content] = field(default_factory=dict[str, Content])
    """Contents by SHA-256: pieces of requests, files, large outputs."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    notes: tuple[str, ...] = ()
    """One line for each item that could not be read, with its position."""


@runtime_checkable
class Recorder(Protocol):
    """Optional capability of a format: its files hold complete runs, not only messages."""

    def recordings(self, path: Path, agent_type: str = "") -> Iterator[Recording]:
        """Read recordings, like `Format.read`.

        `agent_type` names the agent that wrote the file; empty = detect it. Raise UsageError if the file can't be read; the
        message suggests other formats.
        """
        ...

    def record(self, recording: Recording) -> ExportFile:
        """Convert the recording to a file."""
        ...


@dataclass(frozen=True, slots=True)
class SourceMark:
    """The state of a source when it was last read completely."""

    format: str
    version: int
    path: str
    size: int
    modified_at: int
    """Time of modification in ns. If this time, the size or the inode changes, the source has changed."""
    inode: int
    conversations: int = 0
    problems: int = 0
    read_at: int = 0
    """Time at which the source was read, in milliseconds since the epoch. Set by the store."""

    def same(self, other: SourceMark) -> bool:
        """Return True if both marks describe the same state of the file and the same version of the format."""
        return (self.version, self.size, self.modified_at, self.inode) == (other.version, other.size, other.modified_at, other.inode)


class FirstMessage(NamedTuple):
    """The first message of an arriving conversation. It shows whether two sessions with the same id are copies of the same session."""

    key: bytes
    digest: bytes
    created_at: int
    """Time of creation, in milliseconds since the epoch; 0 = unknown."""


@dataclass(frozen=True, slots=True)
class IncomingConversation:
    """A conversation of a source that is about to be imported."""

    format: str
    version: int
    source_id: str
    conversation: Conversation
    """The conversation to create if it isn't stored yet, with a new id and the initial `origin`."""
    parent: str | None = None
    """The `source_id` of the parent conversation."""
    parent_call: str | None = None
    copied_from: str | None = None
    """The `source_id` of the conversation that it was forked from."""
    rank: int = 0
    """Like `ImportedConversation.rank`."""
    started_at: int = 0
    """Time in ms at which it was created, to find out which of several conversations contains the original of a message."""
    resumable: bool = False
    """True if `source_id` is an agent's session id. If one of moot's own runs created that session, its content is already stored."""
    host: str = ""
    """Name of the machine that it comes from; empty = this machine. Sessions from different machines are different conversations, unless
    their id and `first` are the same."""
    first: FirstMessage | None = None


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The conversation that an import writes to."""

    id: str
    """Empty for a purged conversation from another machine, and for a dry run."""
    is_new: bool = False
    closed: bool = False
    """True if nothing can be added: a person deleted it, it is a complete recording, or one of moot's own runs created it."""
    version: int = 0
    """Version of the format with which the conversation was last read completely; 0 = never."""
    is_alias: bool = False
    """True if it belongs to another machine, and the arriving session is a copy of it. Only new messages are added."""
    rewritten: dict[bytes, str] = field(default_factory=dict[bytes, str])
    """Ids of new siblings, by the key of a message that has changed in the source or is below a changed one. Updated by `Imports.take`."""
    taken: set[bytes] = field(default_factory=set[bytes])
    """Keys of the messages that were compared so far. A second message with the same key doesn't replace the first. Updated by `take`."""


class IncomingEntry(NamedTuple):
    """A message or record to import: its identity, and its JSON in stored form."""

    key: bytes
    digest: bytes
    """Digest of `raw`."""
    raw: Raw
    body: bytes
    """Event body of a record; empty for a message, whose body is built when its ids are known."""
    problem: str = ""
    """Description of what is wrong with the record; empty = nothing."""
    role: Role | None = None
    """The message's role; None = the entry is a record, and the fields below are unused."""
    parts: bytes = b""
    metadata: bytes = b""
    parent: bytes | None = None
    """Key of the parent message; None = a root message."""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch; 0 = unknown."""
    usage: Usage = NO_USAGE
    cost: int | None = None
    unpriced: bool = False
    """True if it used tokens whose cost is unknown."""
    identities: tuple[bytes, ...] = ()
    """16-byte digests of `ImportedMessage.identities`; empty = unknown."""
    compare: bool = False
    """True if a stored message may be different, although its raw bytes are the same."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """The number of entries by outcome; each is counted once."""

    added: int = 0
    grown: int = 0
    """Number of messages to which the source has appended something."""
    rewritten: int = 0
    """Number of messages that changed in the source, and of the messages below them. Each is stored again, in a new branch."""
    records: int = 0
    known: int = 0
    loose: int = 0
    """Number of messages whose parent is missing. They become roots."""

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(*map(add, astuple(self), astuple(other)))

    @property
    def changed(self) -> bool:
        """True if anything was stored."""
        return bool(self.added or self.grown or self.rewritten or self.records)


@dataclass(frozen=True, slots=True)
class FinalFacts:
    """Facts about a conversation that are known once its source has been read completely. Empty fields change nothing."""

    version: int
    head: bytes | None = None
    """Key of the last message of the source's branch."""
    title: str = ""
    title_source: Literal["first-line", "model"] = "model"
    model: str = ""
    created_at: int = 0
    updated_at: int = 0
    archived: bool = False
    directory: str = ""
    """Folder for a conversation that has none yet, because the source names it only later."""
    allowed_uris: tuple[str, ...] = ()
    is_finished: bool = False
    """True if the task is finished. False changes the stored value too."""
    project: Project | None = None
    """The source's project. Its id is the same in every import; the id of the stored project is derived from this id."""
    origin: JsonObject = field(default_factory=empty)
    """Fields that are merged into the conversation's `origin`."""


class Imports(Protocol):
    """Imported conversations and the sources they came from."""

    async def find(self, format: str, source_id: str) -> Conversation | None:
        """Return the conversation imported from that source, or None if there is none or it was purged."""
        ...

    async def add(self, recording: Recording) -> Conversation:
        """Store a recording whose ids are all new, in one durable transaction. Its runs have ended and have no owner.

        Raise Busy if one of the ids already exists.
        """
        ...

    async def receive(self, arriving: IncomingConversation, *, dry_run: bool = False) -> ImportTarget:
        """Find or create the conversation, and link it to its parent once both are stored. A dry run creates nothing."""
        ...

    async def take(
        self, received: ImportTarget, arrivals: Sequence[IncomingEntry], *, compare: bool = False, dry_run: bool = False
    ) -> ImportCounts:
        """Add the entries that are not known yet, in one short transaction. A parent must be in this batch before its children, or stored.

        A message that has changed becomes a sibling of its former version, and the messages below it are stored again below the sibling.
        The current branch moves to the new messages as long as only imports have moved it before. With `compare`, known messages are
        compared too. Use it if they were read by another version of the format.
        """
        ...

    async def settle(self, received: ImportTarget, settled: FinalFacts) -> Conversation:
        """Apply the final facts and return the conversation. Like all import data, the facts are not fsynced; a lost import is repeated."""
        ...

    async def mark(self, format: str, path: str) -> SourceMark | None:
        """Return the state of the source when it was last read completely."""
        ...

    async def remember(self, mark: SourceMark) -> None:
        """Remember that the source was read completely."""
        ...

    async def exported(self, path: str) -> int | None:
        """Return the size of the export that was written to that path, or None if there is no known export."""
        ...

    async def counts(self) -> dict[str, int]:
        """Return the number of conversations by format."""
        ...
