"""`/continue`, also `/resume`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.commands.command import Choice, Choose, Go, Reply, Say, Situation
from moot.errors import NotFound
from moot.types.conversation import Conversation

__all__ = ["Continue"]

_LISTED = 200
_INDEX = re.compile(r"[1-9][0-9]{0,2}")


class Continue:
    help = "go on with another conversation"
    argument = "[CONVERSATION]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        page = await situation.engine.store.conversations.list(limit=_LISTED)
        others = [one for one in page.items if one.id != situation.conversation]
        return [Choice(one.id, one.title or "(no title)", _about(one)) for one in others]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if argument:
            return [Go((await _found(situation, argument)).id)]
        choices = await self.choices(situation)
        return [Choose("Conversation", choices)] if choices else [Say("there is no other conversation yet", "dim")]


async def _found(situation: Situation, reference: str) -> Conversation:
    conversations = situation.engine.store.conversations
    if not _INDEX.fullmatch(reference):
        return await conversations.get(reference)
    listed = (await conversations.list(limit=min(int(reference), _LISTED))).items
    if len(listed) < int(reference):
        raise NotFound(f"no conversation number {reference}; the list has {len(listed)}", fix="/continue")
    return listed[int(reference) - 1]


def _about(conversation: Conversation) -> str:
    came = f"from {conversation.came_from} · " if conversation.came_from else ""
    return f"{came}{conversation.message_count} messages · {conversation.directory} · {conversation.id[:13]}"
