"""The seams of semantic search: embedding texts as vectors, and finding the nearest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from moot.types.search import SearchPage

__all__ = ["Embedder", "Meaning", "Meant"]


class Embedder(Protocol):
    """An embedding model. Methods block; they are called in threads, one at a time."""

    model: str
    """Name and version of the weights; vectors of different models can't be compared."""

    def embed(self, text: str, *, question: bool) -> bytes:
        """Return the text's vector. Questions are embedded differently than the texts to find. Only the beginning of a long text counts."""
        ...

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        """Return the similarity to each of the others; 1 = identical."""
        ...


@dataclass(frozen=True, slots=True)
class Meant:
    """A semantic search query."""

    query: str
    """The typed query. Operators filter like in every search; the words are matched only by meaning."""
    limit: int = 50
    conversation: str | None = None
    """The only conversation to search; None = all, with at most one hit per conversation."""


class Meaning(Protocol):
    async def search(self, meant: Meant, *, embedder: Embedder, wait: float = 2.0) -> SearchPage:
        """Search, nearest first. Before that, embed new answers, newest first, for at most `wait` seconds; `done` and `total` of the page
        count embedded answers. Raise UsageError if the query has no words to match."""
        ...

    async def read(self, *, embedder: Embedder, seconds: float = 30.0, share: float = 1.0) -> tuple[int, int]:
        """Embed answers that have no vector of this model for at most `seconds`, using that share of the time; return (done, total)."""
        ...
