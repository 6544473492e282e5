"""The seam of counting what runs took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over runs that have ended."""

    runs: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: int = 0
    """Nano-dollars of the runs whose price is known."""
    unpriced_runs: int = 0


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


class Stats(Protocol):
    """Counts of what is stored; what was deleted and can be restored counts too."""

    async def usage(self, *, since: int = 0, until: int | None = None, conversation: str | None = None) -> Usages:
        """Of runs that were made at `since` (ms) or later and before `until`."""
        ...
