"""`/fork`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Go, Reply, Say, Situation, begun

__all__ = ["Fork"]


class Fork:
    help = "go on in a copy of this conversation; this one stays as it is"
    argument = "[TITLE]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        conversation = await begun(situation)
        made = await situation.engine.store.tree.fork(conversation.id, title=argument)
        return [Say(f"{made.title}: {made.id}", "dim"), Go(made.id)]
