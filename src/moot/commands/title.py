"""`/title`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Reply, Say, Situation, begun

__all__ = ["Title"]


class Title:
    help = "show the title, or give one that stays"
    argument = "[TITLE]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        conversation = await begun(situation)
        if argument:
            title = " ".join(argument.split())
            conversation = await situation.engine.store.conversations.rename(conversation.id, title, "user")
        return [Say(conversation.title or "(no title)")]
