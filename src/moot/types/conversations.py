"""The seam of conversations and the messages in them."""

from __future__ import annotations

from typing import Literal, Protocol

from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.page import Page


class Conversations(Protocol):
    """Conversations and the tree of messages. Lists are newest activity first."""

    async def create(self, conversation: Conversation) -> Conversation:
        """With its `no` and times. Raises Busy when id or key exists."""
        ...

    async def get(self, reference: str) -> Conversation:
        """By id, client id, unique prefix (4 characters or more) or exact title. Raises NotFound, naming the candidates if several fit."""
        ...

    async def keyed(self, key: str) -> Conversation | None:
        """Keys are each owner's own; in the view of everybody they are the local user's."""
        ...

    async def named(self, client_id: str) -> Conversation | None:
        """By exactly its id, or the one that a client gave it."""
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
        """Those in whose title, model, agent, origin or directory each word of the query occurs, in any case of letters.
        With `parent` only its sub-agents'.

        Raises UsageError for a cursor that is none of ours.
        """
        ...

    async def rename(self, id: str, title: str, source: Literal["first-line", "model", "user"]) -> Conversation:
        """A user's title wins for ever."""
        ...

    async def set_settings(self, id: str, settings: JsonObject) -> Conversation:
        """Replaces them, all but `grants`, which answers and `Grants` change."""
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
        """Sets what is given: (agent, agent_type), model, archived or not, project; `touch` makes now its last activity.

        An agent and a model set so stick: a run that is under way does not put its own in their place.
        """
        ...

    async def delete(self, id: str, *, restore: bool = False) -> Conversation:
        """Marks it deleted (or not), with a `tree` event; nothing is lost until a purge. Raises Busy while a run is running."""
        ...

    async def branch(self, id: str, *, head: str | None = None, limit: int | None = None) -> list[Message]:
        """The shown branch (or the one that ends with `head`), oldest first; the last `limit` of it. A live message is folded to now."""
        ...

    async def message(self, reference: str, *, conversation: str | None = None) -> Message:
        """A live one folded to now; in a conversation also by the id that a client gave it. Raises NotFound."""
        ...

    async def add_message(
        self, message: Message, *, raw: bytes | None = None, body: JsonObject | None = None, move_head: bool = True
    ) -> Message:
        """A whole message outside any run (an import, an edit, a system line), as one `message` event."""
        ...
