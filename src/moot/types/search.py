"""The seam of finding words in all conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Hit:
    conversation: str
    message: str
    title: str
    role: str
    at: int
    """ms"""
    snippet: str
    """Plain text; matches stand between U+0002 and U+0003."""
    column: Literal["text", "tools", "reasoning"] = "text"
    """Where the snippet is from: what was said, tool calls with their outputs, or reasoning."""
    seq: int = 0
    """First seq of the message in its conversation's log; 0 = none."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    hits: tuple[Hit, ...]
    done: int
    """Messages indexed."""
    total: int
    next_cursor: str | None = None
    ranked: int | None = None
    """Only so many of the matches were ranked, the newest ones; None = all, or none were."""
    cut: bool = False
    """A piece of a word occurs in so many words that only the most common ones were looked for."""
    loose: bool = False
    """Nothing has all of the words: these have some of them, the best first, on one page."""


class Past(Protocol):
    """Earlier conversations of whoever owns the running one."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        """As `Search.search`; the running conversation is left out unless `here`."""
        ...


class Search(Protocol):
    async def search(
        self,
        query: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        conversation: str | None = None,
        but_not: str | None = None,
        best: bool = False,
        wait: float = 2.0,
    ) -> SearchPage:
        """Newest first (to the second, then as they were written), or the best. First indexes what is missing, for at most `wait` seconds.

        Where nothing has all of the words it is what has some of them, and all that is between quotes.
        `conversation` is the only one to look in, `but_not` one to leave out. Raises UsageError for a query that can't be meant.
        """
        ...

    async def index(self, *, seconds: float = 30.0, bulk: bool = False, told: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Indexes for at most that long; (done, total), which `told` hears now and then too. Returns at once when another process holds the
        indexer lock. `bulk`: nobody else in this process waits for the store, so it may take its time for each transaction."""
        ...
