"""The interface of usage statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from moot.types.budget import Spending, SpendingQuery


@dataclass(frozen=True, slots=True)
class Counts:
    """Totals of finished answers, both of runs and of imported messages."""

    runs: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: int = 0
    """Cost in nano-dollars of the answers with a known price."""
    unpriced_runs: int = 0
    """Number of answers with an unknown cost."""
    steps: int = 0
    ms: int = 0
    """Time in milliseconds that models worked on the answers, as far as known."""
    timed_output: int = 0
    """Number of output tokens produced in the time `ms`."""
    first_ms: int = 0
    """Sum of the times to the first output in milliseconds, as far as known."""
    firsts: int = 0
    """Number of answers included in `first_ms`."""
    contexts: int = 0
    """Sum of the input tokens of each answer's largest model call."""

    @property
    def first(self) -> int | None:
        """Mean time to the first output in milliseconds; None = unknown."""
        return round(self.first_ms / self.firsts) if self.firsts else None

    @property
    def rate(self) -> float | None:
        """Output tokens per second of the models' working time; None = unknown."""
        return self.timed_output * 1000 / self.ms if self.ms and self.timed_output else None

    @property
    def context(self) -> int:
        """Mean number of input tokens of an answer's largest model call."""
        return round(self.contexts / self.runs) if self.runs else 0


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """Statistics of one tool's calls."""

    calls: int = 0
    failed: int = 0
    denied: int = 0
    ms: int = 0
    """Total duration in milliseconds of the calls counted in `timed`."""
    timed: int = 0
    """Number of calls with a known duration."""


@dataclass(frozen=True, slots=True)
class AuxiliaryCounts:
    """Statistics of model calls that aren't part of an answer. Their cost is not included in the other totals."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cost: int = 0
    """Cost in nano-dollars of the calls with a known price."""
    unpriced: int = 0
    """Number of calls with an unknown price."""


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The context size of one answer."""

    at: int
    """Time of the answer, in milliseconds since the epoch."""
    tokens: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage statistics of the store or a part of it."""

    conversations: int
    messages: int
    total: Counts
    days: dict[str, Counts]
    """Totals by day in UTC, such as `2026-12-24`, newest first."""
    models: dict[str, Counts]
    """Totals by model, most runs first; an empty name means an unknown model."""
    agents: dict[str, Counts]
    projects: dict[str, Counts]
    """Totals by project name; projects with the same name are combined."""
    hosts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Totals by the machine that the conversations were imported from, most runs first; an empty name means this machine. Empty if all
    conversations are of this machine."""
    tools: dict[str, ToolCounts] = field(default_factory=dict[str, ToolCounts])
    """Totals by tool, most calls first."""
    errors: dict[str, int] = field(default_factory=dict[str, int])
    """Number of failed runs by kind of error, most first."""
    asides: dict[str, AuxiliaryCounts] = field(default_factory=dict[str, AuxiliaryCounts])
    """Totals by purpose: title, compact, explain, picture, transcript."""
    contexts: tuple[ContextSize, ...] = ()
    """Context sizes of the answers of a single conversation, oldest first; empty for several conversations."""
    uncounted: int = 0
    """Number of finished answers that could not be counted within the time limit; the totals don't include them."""


class Stats(Protocol):
    """Usage statistics; deleted conversations count until they are purged."""

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None, wait: float = 2.0) -> UsageReport:
        """Sum answers started at `since` (ms) or later and before `until`. First count new answers, for at most `wait` seconds."""
        ...

    async def count(self, *, seconds: float = 30.0) -> int:
        """Count new and changed answers for at most `seconds`; return the number that remains."""
        ...

    async def spent(self, queries: Sequence[SpendingQuery]) -> list[Spending]:
        """Return what the runs of each query have spent, from one snapshot. Steps in progress are not included.

        Imported answers, auxiliary calls and purged conversations don't count.
        """
        ...
