"""The seam of a foreign conversation format: what a file of another program holds, and a file of ours for another program.

Both ways are pure and synchronous: no clock, no network, nothing written. They run in a worker thread behind a bounded queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from moot.types.canonical import Json, JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.event import Raw
from moot.types.message import Message, Role
from moot.types.part import Part

Counts: TypeAlias = Mapping[str, int]
"""What → how many, in the same words everywhere: `messages`, `reasoning`, `signatures`, `tool calls`, `files`, `pictures`, `other parts`,
`times`, `models`, `usage`, `costs`, `titles`, `branches`, `sub-agents`, `records`."""

Sample: TypeAlias = bytes | Mapping[str, bytes]
"""A source to try reading with: a file's bytes; of a folder the path of each file in it → its bytes."""

Keeping: TypeAlias = Literal["kept", "approximated"]

_PLAIN = ("title", "head", "directory", "agent", "model", "created_at", "updated_at", "archived", "key")


@dataclass(frozen=True, slots=True)
class Fidelity:
    """What became of the things in a conversation on the way; each thing is counted once."""

    kept: Counts = field(default_factory=dict[str, int])
    approximated: Counts = field(default_factory=dict[str, int])
    """There, and not quite as it was: a time without its zone, a tool call as text."""
    lost: Counts = field(default_factory=dict[str, int])
    """Not there any more; of an import its raw still is."""

    def __add__(self, other: Fidelity) -> Fidelity:
        return Fidelity(
            _sum(self.kept, other.kept),
            _sum(self.approximated, other.approximated),
            _sum(self.lost, other.lost),
        )


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message as a source has it."""

    role: Role
    parts: tuple[Part, ...]
    source_id: str
    """Unique in the conversation; made of the position where the source has none, so that a second import finds it again."""
    raw: Raw
    """The source's own records for it, joined, byte for byte. Of a message that has grown since, what there was is a prefix."""
    parent: str | None = None
    """The `source_id` of an earlier message; None = a first one."""
    created_at: int = 0
    """ms since the epoch; 0 = the source does not say."""
    metadata: JsonObject = field(default_factory=empty)
    """As `Message.metadata` of our own runs: model, provider, finish_reason, and steps with usage, cost and time, where the source says."""


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record that is no message, a broken one too: kept as it is, beside the conversation."""

    raw: Raw
    """Empty where the record is too large to be held; `problem` says so."""
    body: Json = None
    """What it says, when it could be read."""
    problem: str = ""
    """What is wrong with it and where, in words; empty = nothing is."""


@dataclass(frozen=True, slots=True)
class ImportedFacts:
    """What a source says of the whole conversation, as far as it is known by now: of any number, what is given fills in or replaces."""

    fidelity: Fidelity = field(default_factory=Fidelity)
    """Of what came since the facts before; they add up."""
    title: str = ""
    head: str | None = None
    """The `source_id` of the message that the shown branch ends with; never told = the last one."""
    directory: str = ""
    agent: str = ""
    model: str = ""
    created_at: int = 0
    """ms since the epoch; 0 = the source does not say."""
    updated_at: int = 0
    archived: bool = False
    key: str = ""
    """What a program finds it by again, such as `cron:nightly`."""
    metadata: JsonObject = field(default_factory=empty)
    """What the source says of it and we have no place for."""


Entry: TypeAlias = ImportedMessage | ImportedRecord | ImportedFacts


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation as a source has it, on its way in."""

    source_id: str
    """Unique in the format and always the same, so that a second import adds only what is new."""
    entries: Iterable[Entry]
    """In the source's order; a parent stands before its children. Read once, before the next conversation is asked for: where a
    conversation can be large it is made while it is read, and memory holds one entry."""
    parent: str | None = None
    """The `source_id` of the conversation that this one is a part of: a sub-agent's."""
    parent_call: str | None = None
    """The tool call there that it answers."""

    def whole(self) -> WholeConversation:
        """All of it at once, for what is small."""
        entries = tuple(self.entries)
        return WholeConversation(self, tuple(entry for entry in entries if not isinstance(entry, ImportedFacts)), together(entries))


@dataclass(frozen=True, slots=True)
class WholeConversation:
    """A conversation that was read to its end."""

    conversation: ImportedConversation
    entries: tuple[ImportedMessage | ImportedRecord, ...]
    facts: ImportedFacts

    @property
    def messages(self) -> tuple[ImportedMessage, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, ImportedMessage))

    @property
    def fidelity(self) -> Fidelity:
        return self.facts.fidelity


def together(entries: Iterable[Entry]) -> ImportedFacts:
    """What all the facts among the entries come to."""
    found = ImportedFacts()
    for entry in entries:
        if isinstance(entry, ImportedFacts):
            found = joined(found, entry)
    return found


def joined(earlier: ImportedFacts, later: ImportedFacts) -> ImportedFacts:
    """The earlier facts with what the later ones give."""
    given = {name: value for name in _PLAIN if (value := getattr(later, name))}
    metadata = {**earlier.metadata, **later.metadata}
    return replace(earlier, **given, metadata=metadata, fidelity=earlier.fidelity + later.fidelity)


@dataclass(frozen=True, slots=True)
class ExportedConversation:
    """A conversation of ours on its way out."""

    conversation: Conversation
    messages: tuple[Message, ...]
    """The shown branch, oldest first. File parts carry `data:` or http(s) URLs: blobs are already resolved."""
    others: tuple[Message, ...] = ()
    """Those of the branches that are not shown, a parent before its children; none when only the shown branch is wanted."""
    children: tuple[ExportedConversation, ...] = ()
    """The conversations of its sub-agents; their `parent_tool_call` says which call they answer."""


@dataclass(frozen=True, slots=True)
class Written:
    """A conversation as a file of the format, and what became of it."""

    data: bytes
    fidelity: Fidelity


class Format(Protocol):
    """A foreign format. Instances are stateless."""

    name: str
    version: int
    """Raised by any change of what the same bytes become."""
    suffix: str
    """Of the files that it writes, with the dot: `.jsonl`."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether this is a source of ours: a file that begins with `head` (at most 64 KiB), or a folder, where `head` is empty.

        Total: never raises, and never says yes to what it can't read.
        """
        ...

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        """Its conversations, one after the other. A record that can't be read is an ImportedRecord, counted as lost; the rest is kept.

        Raises UsageError when nothing of the source is of this format. Never changes the source.
        """
        ...

    def write(self, exported: ExportedConversation) -> Written:
        """The conversation in this format. Raises UsageError for a format that can only be read."""
        ...


@runtime_checkable
class Holding(Protocol):
    """An optional power: what of ours a file of the format holds, thing by thing in the words of `Counts`."""

    words: str
    """What such a file is good for, in a line."""
    holds: Mapping[str, Keeping]
    """`kept`: reading what was written gives it back as it was. What is not named is lost."""


@runtime_checkable
class Outward(Protocol):
    """An optional trait: a format that is only written. It claims no source and reads none."""

    outward: Literal[True]


@runtime_checkable
class Legible(Protocol):
    """An optional trait: what it writes is text that reads well in a terminal."""

    legible: Literal[True]


@runtime_checkable
class Sampled(Protocol):
    """An optional power: sources to try reading with, by name; a format that can only be read has to have it."""

    samples: Mapping[str, Sample]


@runtime_checkable
class Placed(Protocol):
    """An optional power: where the program whose format it is keeps its conversations on this machine."""

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        """Files and folders, whether they exist or not; what its environment variables say goes before `home`."""
        ...


@dataclass(frozen=True, slots=True)
class ForeignConfiguration:
    """What a program keeps besides conversations, for a person to look at; nothing of it is taken over by itself."""

    pieces: JsonObject = field(default_factory=empty)
    """Sections of a configuration of ours, such as `agents` and `mcp`. What could run something is switched off; secrets are left out."""
    unsupported: JsonObject = field(default_factory=empty)
    """What there is no place for, under the program's own names and word for word."""
    notes: tuple[str, ...] = ()
    """What is not quite as it was, and what somebody has to look at, each in a line."""


@runtime_checkable
class Configured(Protocol):
    """An optional power: a program whose sources lie beside a configuration."""

    def configuration(self, path: Path) -> ForeignConfiguration:
        """What stands in or beside a source, or a folder of sources. Pure, and total: what can't be read is a note."""
        ...


@runtime_checkable
class Split(Protocol):
    """An optional power: a folder of many sources, each of which is read, and remembered as read, by itself."""

    def sources(self, folder: Path) -> Iterator[Path]:
        """The sources in a folder that `sniff` claims, in an order that is always the same. Links are not followed."""
        ...


@runtime_checkable
class OfAgent(Protocol):
    """An optional power: whose sessions they are; that agent service can go on in them, by their `source_id`s."""

    agent_type: str


@runtime_checkable
class Resumable(Protocol):
    """An optional power: each `source_id` is the id by which a program goes on in a session, and nobody else gives such ids.

    So what runs of ours have had it keep is known, whichever agent service drove it.
    """

    resumable: Literal[True]


def _sum(one: Counts, other: Counts) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
