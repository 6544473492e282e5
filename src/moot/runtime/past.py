"""Earlier conversations, for a tool call: what the owner of the running conversation could find, and no more."""

from __future__ import annotations

from dataclasses import dataclass

from moot.types.search import Search, SearchPage


@dataclass(frozen=True, slots=True)
class OwnPast:
    """Implements `Past`."""

    index: Search
    """The owner's."""
    conversation: str
    """The running one."""

    async def search(self, query: str, *, limit: int, best: bool, here: bool) -> SearchPage:
        return await self.index.search(query, limit=limit, best=best, exclude=None if here else self.conversation)
