"""The linked copy in which an imported conversation continues."""

from __future__ import annotations

from moot.types.conversation import Conversation
from moot.types.store import Conversations
from moot.types.tree import copy_key

__all__ = ["copy_of"]


async def copy_of(conversations: Conversations, conversation: Conversation) -> Conversation | None:
    """Return the linked copy that continues the conversation's current head, or None if there is none.

    The next prompt goes to the copy, so faces show the copy.
    """
    if not conversation.follows or conversation.head is None:
        return None
    head = await conversations.message(conversation.head, conversation=conversation.id)
    copy = await conversations.by_key(copy_key(conversation.id, head.id, head.last_seq))
    return copy if copy is not None and copy.deleted_at is None else None
