"""The interfaces of full-text and semantic search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Hit:
    conversation: str
    message: str
    title: str
    role: str
    at: int
    """Time of the message, in milliseconds since the epoch."""
    snippet: str
    """Plain text; matches are enclosed in U+0002 and U+0003."""
    column: Literal["text", "tools", "reasoning"] = "text"
    """Source of the snippet: message text, tool calls with their outputs, or reasoning."""
    seq: int = 0
    """`seq` of the message's first event in the conversation's log; 0 = none."""
    context: str = ""
    """The line with the match, and the requested number of lines before and after it, marked like `snippet`."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    hits: tuple[Hit, ...]
    done: int
    """Number of indexed messages."""
    total: int
    next_cursor: str | None = None
    ranked: int | None = None
    """Number of ranked matches (the newest ones) if there were too many to rank all of them; None otherwise."""
    cut: bool = False
    """True if a partial word matches so many words that only the most common ones were searched."""
    loose: bool = False
    """True if no message contains all words: the hits contain some of the words, best first, on a single page."""
    stopped_at: int | None = None
    """Time of the oldest message that was compared with a regular expression, in milliseconds since the epoch, if the search reached its
    time limit. The next page continues there. None otherwise."""


class HistorySearch(Protocol):
    """Search in earlier conversations of the running conversation's owner."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        """Search like `Search.search`; the running conversation is excluded unless `here` is set."""
        ...


class Search(Protocol):
    async def search(
        self,
        query: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        conversation: str | None = None,
        exclude: str | None = None,
        best: bool = False,
        context: int = 0,
        wait: float = 2.0,
    ) -> SearchPage:
        """Return hits, newest first (within a second, in storage order) or best first.

        Before the search, index new messages for up to `wait` seconds. If no message contains all words, return those that contain some of
        them and every quoted phrase. `conversation` is the only conversation to search, `exclude` a conversation to leave out. `context`
        is the number of lines around the match in each hit, at most 100. Raise UsageError for an invalid query.
        """
        ...

    async def index(
        self, *, seconds: float = 30.0, bulk: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> tuple[int, int]:
        """Index for at most `seconds` and return (done, total). Meanwhile, report the same two numbers to `progress`.

        Return at once if another process holds the indexer lock. With `bulk`, transactions may be long: use this if nothing else in this
        process is waiting for the store.
        """
        ...


class Embedder(Protocol):
    """An embedding model. Methods block; they are called in threads, one at a time."""

    model: str
    """Name and version of the weights; vectors of different models can't be compared."""

    def embed(self, text: str, *, question: bool) -> bytes:
        """Return the text's vector. Queries are embedded differently from the texts to find. Of a long text, only the beginning is used."""
        ...

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        """Return the similarity of a vector to each of the others; 1 = identical."""
        ...


class Embedders(Protocol):
    """The embedding model of this process, loaded on first use."""

    def here(self) -> bool:
        """Return True if the model is installed."""
        ...

    async def embedder(self) -> Embedder:
        """Return the model. Raise UsageError if a package or the weights are missing, ProviderError if the weights are damaged."""
        ...


@dataclass(frozen=True, slots=True)
class SemanticQuery:
    """A semantic search query."""

    query: str
    """The typed query. Operators filter as in every search; the words are matched only by meaning."""
    limit: int = 50
    conversation: str | None = None
    """The only conversation to search; None = all, with at most one hit per conversation."""


class SemanticSearch(Protocol):
    async def search(self, meant: SemanticQuery, *, embedder: Embedder, wait: float = 2.0) -> SearchPage:
        """Return hits, closest in meaning first.

        Before the search, embed new answers, newest first, for at most `wait` seconds. `done` and `total` are the numbers of embedded and
        of all answers. Raise UsageError if the query has no words to match.
        """
        ...

    async def read(self, *, embedder: Embedder, seconds: float = 30.0, share: float = 1.0) -> tuple[int, int]:
        """For at most `seconds`, embed answers that have no vector of this model, using `share` of the time. Return (done, total)."""
        ...
