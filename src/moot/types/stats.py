"""The interface of usage statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Literal, Protocol, TypeAlias

from moot.types.limits import Spending, SpendingQuery
from moot.types.windows import UsageWindows

Grouping: TypeAlias = Literal["hour", "day", "week", "month", "hour-of-day", "model", "agent", "project", "host", "tool", "error"]
GROUPINGS: tuple[Grouping, ...] = ("day", "hour-of-day", "model", "agent", "project", "host", "tool", "error")
"""The groupings of a report, unless others are requested."""


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
    """Known cost in nano-dollars. An answer with steps of unknown price adds the cost of its other steps."""
    unpriced_runs: int = 0
    """Number of answers whose cost is completely or partly unknown."""
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
    """Totals by day, such as `2026-12-24`, newest first."""
    models: dict[str, Counts]
    """Totals by model, most runs first; an empty name means an unknown model."""
    agents: dict[str, Counts]
    """Totals by agent. Sub-agents count for the agent that started them, unless they are counted separately."""
    projects: dict[str, Counts]
    """Totals by project name; projects with the same name are combined."""
    hosts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Totals by the machine that the conversations were imported from, most runs first; an empty name means this machine. Empty if all
    conversations are from this machine."""
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
    hours: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Totals by hour, such as `2026-12-24 18:00`, newest first; empty unless requested."""
    weeks: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Totals by week, named by its Monday; empty unless requested."""
    months: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Totals by month, such as `2026-12`; empty unless requested."""
    hours_of_day: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Totals by the hour of the day, from `00` to `23`."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change to a file by a tool call."""

    path: str
    """The file name in the call."""
    conversation: str
    message: str
    """Id of the answer with the call."""
    agent: str
    tool: str
    added: int | None
    """Number of added lines; None = unknown."""
    removed: int | None
    at: int
    """Time of the answer in ms since the epoch."""


class Stats(Protocol):
    """Usage statistics; deleted conversations count until they are purged."""

    async def usage(
        self,
        *,
        since: int = 0,
        until: int | None = None,
        conversation: str | None = None,
        by: Sequence[Grouping] = GROUPINGS,
        zone: tzinfo = UTC,
        apart: bool = False,
        wait: float = 2.0,
    ) -> UsageReport:
        """Sum answers started at `since` (ms) or later and before `until`. Before that, count new answers, for at most `wait` seconds.

        Only the groups named in `by` are returned; the others are empty. Hours, days, weeks and months are those of the time zone `zone`.
        Unless `apart` is set, sub-agents are counted for the agent and the conversation that started them.
        """
        ...

    async def windows(self, now: int, *, days: int = 8, wait: float = 2.0) -> UsageWindows:
        """Return the usage in the subscription periods that include `now` (ms), and the 5-hour blocks of the last `days` days."""
        ...

    async def edits(self, *, limit: int = 50, before: str | None = None, wait: float = 2.0) -> tuple[list[FileEdit], str | None]:
        """Return changes to files by tool calls, newest first, and the cursor of the next page, which is None on the last page.

        Raise UsageError for an invalid cursor. Deleted conversations are left out.
        """
        ...

    async def count(self, *, seconds: float = 30.0) -> int:
        """Count new and changed answers for at most `seconds`; return the number of remaining answers."""
        ...

    async def spent(self, queries: Sequence[SpendingQuery]) -> list[Spending]:
        """Return the total spending of the runs in each query, from one snapshot. Steps in progress are not included.

        Imported answers, auxiliary calls and purged conversations don't count.
        """
        ...
