"""What became of everything that was to be brought in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.format import Fidelity
from moot.types.imports import Taken

__all__ = ["NOTES", "Brought", "Failed", "Outcome", "Report", "fidelity_json"]

Outcome: TypeAlias = Literal["added", "grown", "known", "would be added", "would grow", "empty"]
"""`empty`: nothing is said in it, so nothing of it is kept."""

NOTES = 20
"""Problems of one conversation that are told in words, and files that are nobody's; the number of all is."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What became of one conversation of a source."""

    outcome: Outcome
    format: str
    path: str
    source_id: str
    conversation: Conversation | None = None
    """The stored one; of a dry run as it would be. None where nothing is kept."""
    agent_type: str = ""
    title: str = ""
    taken: Taken = field(default_factory=Taken)
    messages: int = 0
    """In the source."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    problems: int = 0
    """Records that could not be read."""
    notes: tuple[str, ...] = ()
    grown: int = 0
    """Events that a recording has more than what an earlier import took; they are not added."""
    unpriced: int = 0
    """Messages with usage and no price."""

    def to_json(self) -> JsonObject:
        taken = self.taken
        counts: JsonObject = {
            "messages": self.messages,
            "added": taken.added,
            "grown": taken.grown,
            "rewritten": taken.rewritten,
            "records": taken.records,
            "known": taken.known,
            "loose": taken.loose,
            "unpriced": self.unpriced,
        }
        return {
            "outcome": self.outcome.replace(" ", "-"),
            "format": self.format,
            "path": self.path,
            "source_id": self.source_id,
            "title": self.title,
            "agent_type": self.agent_type,
            "counts": counts,
            "grown": self.grown,
            "fidelity": fidelity_json(self.fidelity),
            "problems": self.problems,
            "notes": list[Json](self.notes),
        }


@dataclass(frozen=True, slots=True)
class Failed:
    """A source that could not be read, or not to its end."""

    path: str
    format: str
    problem: str


@dataclass(slots=True)
class Report:
    """Grows while it is worked on; whoever shows it looks again when `heard` is called."""

    heard: Callable[[], None] = lambda: None
    sources: int = 0
    """In all, as far as they are found."""
    done: int = 0
    unchanged: int = 0
    """Sources that stand as they were when they were last read."""
    older: int = 0
    """Sources and conversations before the wanted date."""
    bytes: int = 0
    """In all."""
    bytes_done: int = 0
    messages: int = 0
    """Read, new or not."""
    conversations: Counter[str] = field(default_factory=Counter[str])
    """Outcome → how many."""
    taken: Taken = field(default_factory=Taken)
    problems: int = 0
    unpriced: int = 0
    """New messages with usage and no price."""
    brought: list[Brought] = field(default_factory=list[Brought])
    """Those of which there is something to say: all but the known ones without problems."""
    failed: list[Failed] = field(default_factory=list[Failed])
    unclaimed: int = 0
    """Files below a folder that no format knows."""
    strangers: list[str] = field(default_factory=list[str])
    """The first of them."""
    current: str = ""
    """The source that is read now."""

    def add(self, one: Brought) -> None:
        self.conversations[one.outcome] += 1
        self.taken += one.taken
        self.problems += one.problems
        self.unpriced += one.unpriced
        self.brought.append(one)
        self.heard()

    def fail(self, path: str, format: str, problem: str) -> None:
        self.failed.append(Failed(path, format, problem))
        self.heard()

    def pass_over(self, path: str) -> None:
        """Takes note of a file that is nobody's."""
        self.unclaimed += 1
        if len(self.strangers) < NOTES:
            self.strangers.append(path)

    @property
    def faulty(self) -> bool:
        """Whether anything of the sources could not be read."""
        return bool(self.failed or self.problems)

    def by_format(self) -> dict[str, Fidelity]:
        """What became of the things in all conversations, by format."""
        found: dict[str, Fidelity] = {}
        for one in self.brought:
            found[one.format] = found.get(one.format, Fidelity()) + one.fidelity
        return found

    def to_json(self) -> JsonObject:
        """Without the single conversations."""
        taken = self.taken
        return {
            "sources": {"total": self.sources, "done": self.done, "unchanged": self.unchanged, "older": self.older},
            "bytes": {"total": self.bytes, "done": self.bytes_done},
            "messages": self.messages,
            "conversations": {name.replace(" ", "-"): count for name, count in self.conversations.items()},
            "added": taken.added,
            "grown": taken.grown,
            "rewritten": taken.rewritten,
            "records": taken.records,
            "problems": self.problems,
            "unpriced": self.unpriced,
            "fidelity": {name: fidelity_json(fidelity) for name, fidelity in self.by_format().items()},
            "unclaimed": {"count": self.unclaimed, "some": list[Json](self.strangers)},
            "failed": [{"path": one.path, "format": one.format, "problem": one.problem} for one in self.failed],
        }


def fidelity_json(fidelity: Fidelity) -> JsonObject:
    return {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}
