"""Access to stored conversations from Python: list, read, change and delete them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from moot.engine import Engine
from moot.features.settings import settings_change
from moot.library.options import folder_of
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation, Page
from moot.types.event import Event
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import Store
from moot.types.tree import Tree


class Conversations:
    """The stored conversations. A `reference` is an id, a prefix of an id with at least 4 characters, or an exact title. All methods raise
    NotFound if no conversation matches.
    """

    def __init__(self, engine: Engine) -> None:
        store: Store = engine.store
        self._engine, self._store = engine, store
        self.tree: Tree = store.tree
        """Operations on the message trees of conversations and their branches. They take ids, not references."""

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        directory: str | Path | None = None,
        deleted: bool = False,
        archived: bool | None = False,
        query: str = "",
        host: str | None = None,
    ) -> Page[Conversation]:
        """Return one page of conversations, most recent activity first. Pass its `next_cursor` as `cursor` to get the next page.
        `archived=None` includes archived conversations.

        Each word of `query` must occur in the title, model, agent, origin or directory; use `m.search` to search messages.
        `host` is the name of another machine, or an empty string for this machine.
        """
        folder = folder_of(directory) or None
        return await self._store.conversations.list(
            limit=limit, cursor=cursor, directory=folder, deleted=deleted, archived=archived, query=query, host=host
        )

    async def get(self, reference: str) -> Conversation:
        """Return the matching conversation."""
        return await self._store.conversations.get(reference)

    async def messages(self, reference: str, *, limit: int | None = None) -> Sequence[Message]:
        """Return the messages of the current branch, oldest first, or the last `limit` of them."""
        return await self._store.conversations.branch((await self.get(reference)).id, limit=limit)

    async def runs(self, reference: str) -> Sequence[Run]:
        """Return the conversation's runs, newest first."""
        return await self._store.records.runs(conversation=(await self.get(reference)).id)

    async def events(self, reference: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """Yield all stored events with a `seq` greater than `after`. Their field `raw` contains the bytes received from the vendor."""
        id = (await self.get(reference)).id
        while page := await self._store.log.read(id, after=after):
            for event in page:
                yield event
            after = page[-1].seq

    async def rename(self, reference: str, title: str) -> Conversation:
        """Set the title. A title set by this method is not replaced by a generated one."""
        return await self._store.conversations.rename((await self.get(reference)).id, title, "user")

    async def change_settings(self, reference: str, changes: JsonObject) -> Conversation:
        """Change settings that apply to every prompt of the conversation, as in `{"mode": "plan", "effort": None}`. None removes a setting.

        Raise UsageError for an unknown setting or an invalid value. Read them with `conversation.own_settings`.
        """
        found = await self.get(reference)
        change = await settings_change(self._engine, changes, found.directory)
        return await change.store(self._store.conversations, found.id)

    async def delete(self, reference: str) -> Conversation:
        """Mark the conversation as deleted; it can be restored. Raise Busy if a run is in progress."""
        return await self._store.conversations.delete((await self.get(reference)).id)

    async def restore(self, reference: str) -> Conversation:
        """Restore a deleted conversation."""
        return await self._store.conversations.delete((await self.get(reference)).id, restore=True)

    async def archive(self, reference: str, archived: bool = True) -> Conversation:
        """Archive the conversation, or unarchive it."""
        return await self._store.conversations.update((await self.get(reference)).id, archived=archived)

    async def fork(self, reference: str, *, message: str | None = None, title: str = "") -> Conversation:
        """Copy the current branch, up to `message` if given, into a new conversation."""
        return await self.tree.fork((await self.get(reference)).id, message=message, title=title)

    async def edit(self, message: str, text: str) -> Message:
        """Add an edited copy of a message as a sibling. The original is kept. To get an answer, use `m.run(text, edits=message)`."""
        return await self.tree.edit(message, (text_part(text),))
