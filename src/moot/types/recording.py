"""The seam of recordings: conversations with their runs, as a file holds them and as a store takes them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.format import Fidelity, Written
from moot.types.message import Message
from moot.types.run import Run


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that are named by their hash elsewhere in the recording."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A conversation with all that its runs said and heard: enough to make it again."""

    source_id: str
    """Always the same for the same source, so that a second import finds what the first one made."""
    conversation: Conversation
    """With the source's own id, as everything in here."""
    messages: tuple[Message, ...]
    """In the order they were stored, with the places of their events."""
    runs: tuple[Run, ...]
    """Oldest first; all of them have ended."""
    exchanges: tuple[Exchange, ...]
    events: tuple[Event, ...]
    """The whole log: seqs dense from 1."""
    deleted: frozenset[str] = frozenset()
    """Messages that are hidden."""
    contents: Mapping[str, Content] = field(default_factory=dict[str, Content])
    """By their SHA-256: pieces of requests, files, outputs that were too large."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    notes: tuple[str, ...] = ()
    """What could not be read, and where, each in a line."""


@runtime_checkable
class Recorder(Protocol):
    """An optional power of a format: it holds whole runs and not messages alone."""

    def recordings(self, path: Path, agent_type: str = "") -> Iterator[Recording]:
        """As `Format.read`; `agent_type` says whose words they are, else it is found out. Raises UsageError in words that say what else
        it could be."""
        ...

    def record(self, recording: Recording) -> Written:
        """The recording as a file."""
        ...
