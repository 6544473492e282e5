"""Conversations as a program reads and arranges them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from moot.library.options import folder_of
from moot.types.conversation import Conversation, Page
from moot.types.event import Event
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import Store
from moot.types.tree import Tree


class Conversations:
    """A reference is an id, the beginning of one (4 characters or more), or an exact title. What fits nothing raises NotFound."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.tree: Tree = store.tree
        """The tree of messages of a conversation, by ids: all of its branches, and what can be done to them."""

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        directory: str | Path | None = None,
        deleted: bool = False,
        archived: bool | None = False,
        query: str = "",
    ) -> Page[Conversation]:
        """One page, newest activity first; `next_cursor` leads to the next one. `archived=None` gives both kinds.

        Each word of `query` occurs in title, model, agent, origin or directory; for what was said there is `m.search`.
        """
        folder = folder_of(directory) or None
        return await self._store.conversations.list(
            limit=limit, cursor=cursor, directory=folder, deleted=deleted, archived=archived, query=query
        )

    async def get(self, reference: str) -> Conversation:
        """The one that is meant."""
        return await self._store.conversations.get(reference)

    async def messages(self, reference: str, *, limit: int | None = None) -> Sequence[Message]:
        """The shown branch, oldest first; the last `limit` of it."""
        return await self._store.conversations.branch((await self.get(reference)).id, limit=limit)

    async def runs(self, reference: str) -> Sequence[Run]:
        """Its runs, newest first."""
        return await self._store.records.runs(conversation=(await self.get(reference)).id)

    async def events(self, reference: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """Everything that its log holds behind `after`, the vendors' own bytes in `raw`; ends at the last event that is stored."""
        id = (await self.get(reference)).id
        while page := await self._store.log.read(id, after=after):
            for event in page:
                yield event
            after = page[-1].seq

    async def rename(self, reference: str, title: str) -> Conversation:
        """Gives it a title that nothing but another rename changes."""
        return await self._store.conversations.rename((await self.get(reference)).id, title, "user")

    async def delete(self, reference: str) -> Conversation:
        """Marks it deleted; nothing of it is lost. Raises Busy while a run is running."""
        return await self._store.conversations.delete((await self.get(reference)).id)

    async def restore(self, reference: str) -> Conversation:
        """Brings a deleted one back."""
        return await self._store.conversations.delete((await self.get(reference)).id, restore=True)

    async def archive(self, reference: str, archived: bool = True) -> Conversation:
        """Takes it out of the list, or puts it back."""
        return await self._store.conversations.update((await self.get(reference)).id, archived=archived)

    async def fork(self, reference: str, *, message: str | None = None, title: str = "") -> Conversation:
        """A new conversation with copies of the shown branch, up to `message` where that is given."""
        return await self.tree.fork((await self.get(reference)).id, message=message, title=title)

    async def edit(self, message: str, text: str) -> Message:
        """The message's new wording, as its sibling; the old one stays. One that is to be answered: `m.run(text, edits=message)`."""
        return await self.tree.edit(message, (text_part(text),))
