"""The seam of recordings: complete conversations with their runs, as read from a file and stored."""

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
    """Bytes that the recording refers to by their hash."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Recording:
    """A conversation with everything its runs sent and received; sufficient to recreate it."""

    source_id: str
    """The same for every import of the same source, so that a second import finds the first."""
    conversation: Conversation
    """With the source's own id, like everything here."""
    messages: tuple[Message, ...]
    """In storage order, with the positions of their events."""
    runs: tuple[Run, ...]
    """Oldest first; all have ended."""
    exchanges: tuple[Exchange, ...]
    events: tuple[Event, ...]
    """The complete log: seqs from 1 without gaps."""
    deleted: frozenset[str] = frozenset()
    """Ids of hidden messages."""
    contents: Mapping[str, Content] = field(default_factory=dict[str, Content])
    """Contents by SHA-256: pieces of requests, files, large outputs."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    notes: tuple[str, ...] = ()
    """One line for each thing that could not be read, with its position."""


@runtime_checkable
class Recorder(Protocol):
    """Optional capability of a format: store complete runs, not only messages."""

    def recordings(self, path: Path, agent_type: str = "") -> Iterator[Recording]:
        """Read recordings, like `Format.read`. `agent_type` names the agent that wrote the file; empty = detect it. Raise UsageError, whose
        message suggests other formats."""
        ...

    def record(self, recording: Recording) -> Written:
        """Convert the recording to a file."""
        ...
