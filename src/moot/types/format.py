"""The seam of a foreign conversation format: what a file of another program holds, and a file of ours for another program.

Both ways are pure and synchronous: no clock, no network, nothing written. They run in a worker thread behind a bounded queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from moot.types.canonical import Json, JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.event import Raw
from moot.types.message import Message, Role
from moot.types.part import Part

Counts: TypeAlias = Mapping[str, int]
"""What (`messages`, `reasoning`, `tool calls`, `pictures`, `times` …) → how many."""


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
    """The source's own records for it, joined, byte for byte."""
    parent: str | None = None
    """The `source_id` of an earlier message; None = a first one."""
    created_at: int = 0
    """ms since the epoch; 0 = the source does not say."""
    metadata: JsonObject = field(default_factory=empty)
    """As `Message.metadata`: model, usage, cost and so on, where the source says."""


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record that is no message, a broken one too: kept as it is, beside the conversation."""

    raw: Raw
    body: Json = None
    """What it says, when it could be read."""


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation as a source has it."""

    source_id: str
    """Unique in the source and always the same, so that a second import adds only what is new."""
    entries: tuple[ImportedMessage | ImportedRecord, ...]
    """In the source's order; a parent stands before its children."""
    fidelity: Fidelity
    title: str = ""
    head: str | None = None
    """The `source_id` of the message that the shown branch ends with; None = the last one."""
    directory: str = ""
    model: str = ""
    created_at: int = 0
    """ms since the epoch; 0 = the source does not say."""
    updated_at: int = 0
    metadata: JsonObject = field(default_factory=empty)
    """What the source says of it and we have no place for."""

    @property
    def messages(self) -> tuple[ImportedMessage, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, ImportedMessage))


@dataclass(frozen=True, slots=True)
class ExportedConversation:
    """A conversation of ours on its way out."""

    conversation: Conversation
    messages: tuple[Message, ...]
    """The shown branch, oldest first. File parts carry `data:` or http(s) URLs: blobs are already resolved."""


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
class Sampled(Protocol):
    """An optional power: sources to try reading with, by name; a format that can't write has to have it."""

    samples: Mapping[str, bytes]


def _sum(one: Counts, other: Counts) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
