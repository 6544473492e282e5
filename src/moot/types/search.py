"""The seam of finding words in all conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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


@dataclass(frozen=True, slots=True)
class SearchPage:
    hits: tuple[Hit, ...]
    done: int
    """Messages indexed."""
    total: int
    next_cursor: str | None = None


class Search(Protocol):
    async def search(
        self, query: str, *, limit: int = 50, cursor: str | None = None, conversation: str | None = None, wait: float = 2.0
    ) -> SearchPage:
        """Newest first. First indexes what is missing, for at most `wait` seconds. All words must occur; FTS syntax is literal."""
        ...

    async def index(self, *, seconds: float = 30.0) -> tuple[int, int]:
        """Indexes for at most that long; (done, total). Returns at once when another process holds the indexer lock."""
        ...
