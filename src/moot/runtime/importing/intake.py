"""Storage of one conversation from the pieces of a source."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from moot.convert.arriving import key_of
from moot.runtime.importing.reading import Piece
from moot.runtime.importing.reports import NOTES, Brought, Outcome, fidelity_json
from moot.runtime.importing.sources import Source
from moot.runtime.naming import first_line
from moot.types.canonical import JsonObject, loads
from moot.types.conversation import Conversation
from moot.types.format import Fidelity, ImportedFacts, OfAgent, Resumable
from moot.types.ids import new_id
from moot.types.imports import Arrival, Arriving, Received, Settled, Taken
from moot.types.part import Part
from moot.types.store import Holdings

__all__ = ["Intake", "Wanted"]

_HELD = 8 << 20
"""Bytes of raw buffered until it is known whether the conversation is wanted."""
_METADATA = 16 << 10
"""Maximum size of source metadata stored in `origin`."""
YOUNG = 60
"""Seconds during which a truncated record at the end of a source is assumed to be still being written."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of an import."""

    directory: str = ""
    """Directory of imported conversations whose source is not in its program's own location."""
    home: Path = field(default_factory=Path.home)
    since: int = 0
    """ms; conversations whose newest message is older are skipped. 0 means all."""
    dry_run: bool = False
    agent_type: str = ""
    """Agent type of captures; empty to detect it."""


@dataclass(slots=True)
class Intake:
    """The state of one conversation while its pieces are stored."""

    holdings: Holdings
    source: Source
    wanted: Wanted
    source_id: str
    parent: str | None
    parent_call: str | None
    received: Received | None = None
    buffered: list[Piece] = field(default_factory=list[Piece])
    buffered_size: int = 0
    facts: ImportedFacts = field(default_factory=ImportedFacts)
    title: str = ""
    """First line of the first prompt."""
    messages: int = 0
    started: bool = False
    """True once there is content other than what a program writes into a new session."""
    unpriced: int = 0
    first_at: int = 0
    last_at: int = 0
    last: bytes | None = None
    """Key of the last message."""
    problems: int = 0
    notes: list[str] = field(default_factory=list[str])
    taken: Taken = field(default_factory=Taken)
    unfinished: bool = False
    """True if the last record seems to be incomplete. It is left for the next import."""

    async def take(self, piece: Piece) -> None:
        """Store a piece, or buffer it until it is known whether the conversation is wanted."""
        self.facts = piece.facts
        arrivals = tuple([arrival for arrival in piece.arrivals if self._accept(arrival)])
        piece = replace(piece, arrivals=arrivals)
        if self.received is None and not self._is_wanted():
            self.buffered.append(piece)
            self.buffered_size += piece.size
            return
        if self.received is None:
            self.received = await self.holdings.imports.receive(self._arriving(), dry_run=self.wanted.dry_run)
        for one in (*self.buffered, piece):
            await self._store(self.received, one.arrivals)
        self.buffered = []

    async def finish(self) -> Brought | None:
        """Return the outcome after the last piece, or None if the conversation is older than `since`."""
        if self.received is None:
            return self._result("empty", None) if not self.started else None
        if self.received.closed:
            return self._result("known", await self.holdings.conversations.get(self.received.id))
        if self.wanted.dry_run:
            outcome: Outcome = "would be added" if self.received.is_new else "would grow" if self.taken.changed else "known"
            return self._result(outcome, None if not self.received.is_new else self._as_new())
        if not self.received.is_new and not self.taken.changed and self.received.version == self.source.format.version:
            return self._result("known", await self.holdings.conversations.get(self.received.id))
        conversation = await self.holdings.imports.settle(self.received, self._settled())
        return self._result("added" if self.received.is_new else "grown" if self.taken.changed else "known", conversation)

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _accept(self, arrival: Arrival) -> bool:
        """Update the state from an entry. Return False if it is left for the next import."""
        if arrival.role is None:
            return self._accept_record(arrival)
        self.messages += 1
        self.started = self.started or arrival.role != "system" or not self.source.placed
        self.unpriced += arrival.unpriced
        self.last = arrival.key
        if arrival.created_at:
            self.first_at = min(self.first_at or arrival.created_at, arrival.created_at)
            self.last_at = max(self.last_at, arrival.created_at)
        if not self.title and arrival.role == "user":
            self.title = first_line(cast("list[Part]", loads(arrival.parts)))
        return True

    def _accept_record(self, record: Arrival) -> bool:
        if not record.problem:
            return True
        if record.raw and not record.raw.endswith(b"\n") and time.time() - self.source.mark.modified_at / 1e9 < YOUNG:
            self.unfinished = True
            return False
        self.problems += 1
        if len(self.notes) < NOTES:
            self.notes.append(self.source.said(record.problem))
        return True

    def _is_wanted(self) -> bool:
        if not self.started:
            return self.buffered_size > _HELD
        newest = max(self.last_at, self.facts.updated_at)
        return not newest or newest >= self.wanted.since or self.buffered_size > _HELD

    async def _store(self, received: Received, arrivals: tuple[Arrival, ...]) -> None:
        if received.closed or not arrivals:
            self.taken += Taken(known=len(arrivals))
            return
        anew = not received.is_new and 0 < received.version < self.source.format.version
        self.taken += await self.holdings.imports.take(received, arrivals, compare=anew, dry_run=self.wanted.dry_run)

    # ── the conversation ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _arriving(self) -> Arriving:
        format = self.source.format
        resumable = self.source.placed and isinstance(format, Resumable)
        return Arriving(format.name, format.version, self.source_id, self._as_new(), self.parent, self.parent_call, resumable)

    def _as_new(self) -> Conversation:
        at = self.first_at or self.facts.created_at or self.source.mark.modified_at // 1_000_000
        return Conversation(
            new_id(),
            project="",
            title=self.facts.title or self.title,
            title_source="model" if self.facts.title else "first-line" if self.title else "none",
            model=self.facts.model,
            directory=self._directory(),
            origin=self._origin(),
            created_at=at,
            updated_at=at,
        )

    def _directory(self) -> str:
        """Return the directory. A source's own directory is trusted only in its program's location, because tools may access it."""
        path_text = self.facts.directory
        if not self.source.placed or not path_text:
            return self.wanted.directory
        path, home = Path(path_text), self.wanted.home
        return path_text if path.is_absolute() and path.is_dir() and path not in (home, *home.parents) else self.wanted.directory

    def _origin(self) -> JsonObject:
        format, facts = self.source.format, self.facts
        origin: JsonObject = {
            "format": format.name,
            "version": format.version,
            "source_id": self.source_id,
            "path": self.source.name,
            "directory": facts.directory,
            "placed": self.source.placed,
        }
        named = {"agent": facts.agent, "key": facts.key, "agent_type": format.agent_type if isinstance(format, OfAgent) else ""}
        origin |= {name: value for name, value in named.items() if value}
        if facts.metadata and len(str(facts.metadata)) <= _METADATA:
            origin["metadata"] = facts.metadata
        return origin

    def _settled(self) -> Settled:
        facts = self.facts
        fidelity: JsonObject = {"fidelity": fidelity_json(facts.fidelity), "problems": self.problems}
        return Settled(
            self.source.format.version,
            key_of(facts.head) if facts.head is not None else self.last,
            facts.title or self.title,
            "model" if facts.title else "first-line",
            facts.model,
            facts.created_at,
            max(facts.updated_at, self.last_at),
            facts.archived,
            {**self._origin(), **fidelity},
        )

    def _result(self, outcome: Outcome, conversation: Conversation | None) -> Brought:
        format = self.source.format
        return Brought(
            outcome,
            format.name,
            self.source.name,
            self.source_id,
            conversation,
            format.agent_type if isinstance(format, OfAgent) else "",
            conversation.title if conversation is not None else self.facts.title or self.title,
            self.taken,
            self.messages,
            self.facts.fidelity if outcome != "empty" else Fidelity(),
            self.problems,
            tuple(self.notes),
            unpriced=self.unpriced,
        )
