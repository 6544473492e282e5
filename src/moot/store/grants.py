"""Permissions that last as long as a conversation: stored in its settings, and recorded in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moot.store import lookup
from moot.store.rows import kept_object
from moot.store.transaction import Transaction
from moot.store.writer import Writer
from moot.types.approval import Grant, grants_of
from moot.types.canonical import Json, dumps
from moot.types.event import Event

__all__ = ["ConversationGrants", "change_grants"]


class ConversationGrants:
    """`Grants` on SQLite."""

    def __init__(self, writer: Writer, owner: str | None = None) -> None:
        self._writer = writer
        self._owner = owner

    async def revoke(self, conversation: str, *, tool: str, match: str) -> bool:
        def work(transaction: Transaction) -> bool:
            no = transaction.conversation_no(lookup.find_conversation(transaction, conversation, self._owner).id)
            return change_grants(transaction, no, lambda kept: [grant for grant in kept if (grant.tool, grant.match) != (tool, match)])

        return await self._writer.write(work, sync=True)


def change_grants(transaction: Transaction, conversation: int, change: Callable[[Sequence[Grant]], Sequence[Grant]]) -> bool:
    """Update the conversation's grants and return True if they changed."""
    settings = kept_object(transaction.row("SELECT settings FROM conversation WHERE no = ?", (conversation,))[0])
    before = grants_of(settings)
    after = tuple(change(before))
    if after == before:
        return False
    settings["grants"] = list[Json]([grant.to_json() for grant in after])
    transaction.add(conversation, (Event("meta", body={"settings": settings}),))
    transaction.execute("UPDATE conversation SET settings = ? WHERE no = ?", (dumps(settings), conversation))
    return True
