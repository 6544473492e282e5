"""The seam of conversations and their messages."""

from __future__ import annotations

from typing import Literal, Protocol

from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.page import Page


class Conversations(Protocol):
    """Conversations and their messages. Lists are sorted by latest activity first."""

    async def create(self, conversation: Conversation) -> Conversation:
        """Store a conversation and return it with its `no` and times. Raise Busy if its id or key exists."""
        ...

    async def get(self, reference: str) -> Conversation:
        """Find by id, client id, unique prefix (4 characters or more) or exact title. Raise NotFound, naming candidates if ambiguous."""
        ...

    async def by_key(self, key: str) -> Conversation | None:
        """Find by key. Keys are unique per owner; in the view of all owners, only the local user's keys are found."""
        ...

    async def by_client_id(self, client_id: str) -> Conversation | None:
        """Find by exact id or client id."""
        ...

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        directory: str | None = None,
        project: str | None = None,
        deleted: bool = False,
        archived: bool | None = False,
        query: str = "",
        parent: str | None = None,
    ) -> Page[Conversation]:
        """List the conversations whose title, model, agent, origin or directory contains each word of the query, ignoring case.

        With `parent`, list only its sub-agents' conversations. Raise UsageError for an invalid cursor.
        """
        ...

    async def rename(self, id: str, title: str, source: Literal["first-line", "model", "user"]) -> Conversation:
        """Set the title, unless the user has set one and `source` is not `user`."""
        ...

    async def set_settings(self, id: str, settings: JsonObject) -> Conversation:
        """Replace the settings, except `grants`, which only answers and `Grants` change."""
        ...

    async def update(
        self,
        id: str,
        *,
        agent: tuple[str, str] | None = None,
        model: str | None = None,
        archived: bool | None = None,
        project: str | None = None,
        touch: bool = False,
    ) -> Conversation:
        """Set the given fields; `agent` is (agent, agent_type). `touch` sets the last activity to now.

        Agent and model set here persist: a run in progress does not replace them by its own.
        """
        ...

    async def delete(self, id: str, *, restore: bool = False) -> Conversation:
        """Mark as deleted, or restore, with a `tree` event; data is lost only in a purge. Raise Busy while a run is running."""
        ...

    async def branch(self, id: str, *, head: str | None = None, limit: int | None = None) -> list[Message]:
        """Return the last `limit` messages of the shown branch (or the one ending with `head`), oldest first, live ones folded to date."""
        ...

    async def message(self, reference: str, *, conversation: str | None = None) -> Message:
        """Return a message, a live one folded to date. With `conversation`, client ids are accepted too. Raise NotFound."""
        ...

    async def add_message(
        self, message: Message, *, raw: bytes | None = None, body: JsonObject | None = None, move_head: bool = True
    ) -> Message:
        """Store a complete message outside any run (an import, an edit, a system line) as one `message` event."""
        ...
