"""The seams of finding by meaning: who turns texts into vectors, and who finds what lies near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from moot.types.search import SearchPage

__all__ = ["Embedder", "Meaning", "Meant"]


class Embedder(Protocol):
    """A model that puts texts of like meaning near each other. Blocking: called in threads, by one at a time."""

    model: str
    """Which weights in which version made the vectors; others can't be compared with them."""

    def embed(self, text: str, *, question: bool) -> bytes:
        """The text's vector; a question is put in another way than what is to be found. Only the beginning of a long text counts."""
        ...

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        """How near each of the others is, 1 = the same."""
        ...


@dataclass(frozen=True, slots=True)
class Meant:
    """A question about meaning."""

    query: str
    """As typed; operators bound it as in every search, words are only meant."""
    limit: int = 50
    conversation: str | None = None
    """The only one to look in; else each one is found once at most."""


class Meaning(Protocol):
    async def search(self, meant: Meant, *, embedder: Embedder, wait: float = 2.0) -> SearchPage:
        """The nearest first. First reads what was not read yet, newest first, for at most `wait` seconds; `done` and `total` of the page
        count the answers that were read. Raises UsageError for a query that can't be meant."""
        ...

    async def read(self, *, embedder: Embedder, seconds: float = 30.0, share: float = 1.0) -> tuple[int, int]:
        """Reads what has no vector of this model for at most that long, on the given share of one's time; (done, total)."""
        ...
