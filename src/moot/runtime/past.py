"""Search in earlier conversations for tools, limited to what the owner of the running conversation can see."""

from __future__ import annotations

from dataclasses import dataclass

from moot.types.search import Search, SearchPage


@dataclass(frozen=True, slots=True)
class OwnPast:
    """`Past` for the owner of a conversation."""

    index: Search
    """The owner's index."""
    conversation: str
    """The running conversation."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        return await self.index.search(query, limit=limit, best=best, exclude=None if here else self.conversation)
