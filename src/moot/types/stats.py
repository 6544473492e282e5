"""The seam of counting what answers took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over answers that are over: runs, and what was brought in from other programs."""

    runs: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: int = 0
    """Nano-dollars of the answers whose price is known."""
    unpriced_runs: int = 0
    steps: int = 0
    ms: int = 0
    """That models worked, where it is known."""
    timed_output: int = 0
    """Output tokens of that time."""
    first_ms: int = 0
    """Sum of the times to the first that was shown, where it is known."""
    firsts: int = 0
    """Of how many answers it is known."""
    contexts: int = 0
    """Sum of the input tokens of each answer's largest model call."""

    @property
    def first(self) -> int | None:
        """Mean ms to the first that was shown."""
        return round(self.first_ms / self.firsts) if self.firsts else None

    @property
    def rate(self) -> float | None:
        """Output tokens a second while models worked."""
        return self.timed_output * 1000 / self.ms if self.ms and self.timed_output else None

    @property
    def context(self) -> int:
        """Mean input tokens of an answer's largest model call."""
        return round(self.contexts / self.runs) if self.runs else 0


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """What calls of one tool came to."""

    calls: int = 0
    failed: int = 0
    denied: int = 0
    ms: int = 0
    """Of the calls whose time is known."""
    timed: int = 0
    """How many those are."""


@dataclass(frozen=True, slots=True)
class AsideCounts:
    """Model calls that belong to no answer; their cost is not in the other sums."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cost: int = 0
    """Nano-dollars of the calls whose price is known."""
    unpriced: int = 0


@dataclass(frozen=True, slots=True)
class ContextSize:
    """How large the context was for an answer."""

    at: int
    """ms"""
    tokens: int


@dataclass(frozen=True, slots=True)
class Usages:
    """What is stored, and what it took."""

    conversations: int
    messages: int
    total: Counts
    days: dict[str, Counts]
    """`YYYY-MM-DD` in UTC, newest first."""
    models: dict[str, Counts]
    """The most runs first; empty = the model is not known."""
    agents: dict[str, Counts]
    projects: dict[str, Counts]
    """By name; those of the same name count together."""
    tools: dict[str, ToolCounts] = field(default_factory=dict[str, ToolCounts])
    """The most calls first."""
    errors: dict[str, int] = field(default_factory=dict[str, int])
    """Kind → failed runs, the most first."""
    asides: dict[str, AsideCounts] = field(default_factory=dict[str, AsideCounts])
    """By what they were for: title, compact, explain, picture, transcript."""
    contexts: tuple[ContextSize, ...] = ()
    """Of one conversation, oldest first: how it has grown."""
    uncounted: int = 0
    """Answers that are over and were not counted in the time there was: the sums are without them."""


class Stats(Protocol):
    """Counts of what is stored; what was deleted and can be restored counts too."""

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None, wait: float = 2.0) -> Usages:
        """Of answers that were begun at `since` (ms) or later and before `until`. First counts what is missing, for at most `wait` s."""
        ...

    async def count(self, *, seconds: float = 30.0) -> int:
        """Counts what came or changed since, for at most that long; how much of it is left."""
        ...
