"""Where a conversation that follows a source of another program is gone on with already."""

from __future__ import annotations

from moot.types.conversation import Conversation
from moot.types.store import Conversations
from moot.types.tree import copy_key

__all__ = ["copy_of"]


async def copy_of(conversations: Conversations, conversation: Conversation) -> Conversation | None:
    """The linked copy in which it was gone on with from where it stands; None when there is none yet, or it has gone on since.

    The next prompt goes there, so a face shows that one.
    """
    if not conversation.follows or conversation.head is None:
        return None
    head = await conversations.message(conversation.head, conversation=conversation.id)
    made = await conversations.by_key(copy_key(conversation.id, head.id, head.last_seq))
    return made if made is not None and made.deleted_at is None else None
