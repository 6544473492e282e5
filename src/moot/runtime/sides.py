"""One side of a comparison of conversations."""

from __future__ import annotations

from moot.convert.comparing import Side
from moot.types.conversation import Conversation
from moot.types.run import Run
from moot.types.store import Holdings

__all__ = ["side_of"]


async def side_of(holdings: Holdings, conversation: Conversation) -> Side:
    """Return the current branch with the runs that wrote it."""
    messages = await holdings.conversations.branch(conversation.id)
    runs: dict[str, Run] = {}
    for message in messages:
        if message.run is not None:
            runs[message.run] = await holdings.records.run(message.run)
    return Side(conversation, messages, runs)
