"""Report of an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.format import Fidelity
from moot.types.imports import ImportCounts

Outcome: TypeAlias = Literal["added", "grown", "known", "would be added", "would grow", "empty", "purged"]
"""`grown`: imported before, with new content since. `known`: imported before, unchanged. `empty`: no content, so nothing is stored.
`purged`: a purged conversation of another machine, which is not imported again."""

NOTES = 20
"""Maximum number of problems described for each conversation, and of unrecognized files listed. All are counted."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome for one conversation."""

    outcome: Outcome
    format: str
    path: str
    source_id: str
    conversation: Conversation | None = None
    """The stored conversation; in a dry run, the one that would be stored. None if nothing is stored."""
    agent_type: str = ""
    title: str = ""
    counts: ImportCounts = field(default_factory=ImportCounts)
    messages: int = 0
    """Number of messages in the source."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    problems: int = 0
    """Number of unreadable records."""
    notes: tuple[str, ...] = ()
    grown: int = 0
    """Number of events that a recording has in addition to those imported earlier. They are not added."""
    unpriced: int = 0
    """Number of messages with token usage but without a known price."""

    def to_json(self) -> JsonObject:
        found = self.counts
        counts: JsonObject = {name: getattr(found, name) for name in ("added", "grown", "rewritten", "records", "known", "loose")}
        return {
            "outcome": self.outcome.replace(" ", "-"),
            "format": self.format,
            "path": self.path,
            "source_id": self.source_id,
            "title": self.title,
            "agent_type": self.agent_type,
            "counts": {"messages": self.messages, **counts, "unpriced": self.unpriced},
            "grown": self.grown,
            "fidelity": fidelity_json(self.fidelity),
            "problems": self.problems,
            "notes": list[Json](self.notes),
        }


@dataclass(frozen=True, slots=True)
class Failed:
    """A source that could not be read completely."""

    path: str
    format: str
    problem: str


@dataclass(frozen=True, slots=True)
class UnreadFolder:
    """A folder or file of a program that moot can't read."""

    program: str
    path: Path
    bytes: int
    is_whole: bool
    """False if counting stopped at a limit, so that the folder is larger."""
    reason: str

    def to_json(self) -> JsonObject:
        return {"program": self.program, "path": str(self.path), "bytes": self.bytes, "is_whole": self.is_whole, "reason": self.reason}


@dataclass(slots=True)
class Report:
    """A report that is updated during an import. `on_change` is called after each change."""

    on_change: Callable[[], None] = lambda: None
    sources: int = 0
    """Total number of sources found so far."""
    done: int = 0
    unchanged: int = 0
    """Number of sources that have not changed since they were last read."""
    older: int = 0
    """Number of sources and conversations older than `since`."""
    bytes: int = 0
    """Total size of the sources in bytes."""
    bytes_done: int = 0
    messages: int = 0
    """Number of messages read, new or not."""
    conversations: Counter[str] = field(default_factory=Counter[str])
    """Outcome → number of conversations."""
    counts: ImportCounts = field(default_factory=ImportCounts)
    problems: int = 0
    unpriced: int = 0
    """Number of messages with token usage but without a known price."""
    brought: list[ImportResult] = field(default_factory=list[ImportResult])
    """Results of all conversations, in the order in which they were read."""
    failed: list[Failed] = field(default_factory=list[Failed])
    unclaimed: int = 0
    """Number of files in the searched folders that no format recognizes."""
    strangers: list[str] = field(default_factory=list[str])
    """Paths of the first unrecognized files, at most `NOTES`."""
    unread: list[UnreadFolder] = field(default_factory=list[UnreadFolder])
    """Folders of agents from which nothing can be read. Determined only for an import from all agents on this machine."""
    current: str = ""
    """Name of the source that is being read; empty between sources."""

    def add(self, one: ImportResult) -> None:
        self.conversations[one.outcome] += 1
        self.counts += one.counts
        self.problems += one.problems
        self.unpriced += one.unpriced
        self.brought.append(one)
        self.on_change()

    def fail(self, path: str, format: str, problem: str) -> None:
        self.failed.append(Failed(path, format, problem))
        self.on_change()

    def pass_over(self, path: str) -> None:
        """Count a file that no format recognizes."""
        self.unclaimed += 1
        if len(self.strangers) < NOTES:
            self.strangers.append(path)

    @property
    def faulty(self) -> bool:
        """True if anything could not be read."""
        return bool(self.failed or self.problems)

    def by_format(self) -> dict[str, Fidelity]:
        """Return the combined fidelity of all conversations by format."""
        found: dict[str, Fidelity] = {}
        for one in self.brought:
            found[one.format] = found.get(one.format, Fidelity()) + one.fidelity
        return found

    def to_json(self) -> JsonObject:
        """Return the report without individual conversations."""
        found = self.counts
        return {
            "sources": {"total": self.sources, "done": self.done, "unchanged": self.unchanged, "older": self.older},
            "bytes": {"total": self.bytes, "done": self.bytes_done},
            "messages": self.messages,
            "conversations": {name.replace(" ", "-"): count for name, count in self.conversations.items()},
            "added": found.added,
            "grown": found.grown,
            "rewritten": found.rewritten,
            "records": found.records,
            "problems": self.problems,
            "unpriced": self.unpriced,
            "fidelity": {name: fidelity_json(fidelity) for name, fidelity in self.by_format().items()},
            "unclaimed": {"count": self.unclaimed, "some": list[Json](self.strangers)},
            "unread": [one.to_json() for one in self.unread],
            "failed": [{"path": one.path, "format": one.format, "problem": one.problem} for one in self.failed],
        }


def fidelity_json(fidelity: Fidelity) -> JsonObject:
    return {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}
