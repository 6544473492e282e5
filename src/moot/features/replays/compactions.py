"""Show summaries at their place in a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moot.types.message import Message
from moot.types.tree import Tree


async def with_summaries(tree: Tree, messages: Sequence[Message]) -> list[Message]:
    """Return the messages of a branch. A `data-compaction` part is added to the end of the last message that a summary covers."""
    if not messages:
        return []
    summaries = {one.through: one for one in await tree.compactions(messages[0].conversation, among=[message.id for message in messages])}
    return [
        replace(message, parts=(*message.parts, summaries[message.id].to_part())) if message.id in summaries else message
        for message in messages
    ]
