"""`/keys`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Reply, Say, Situation

__all__ = ["Keys"]


class Keys:
    help = "what there is to press"
    argument = ""

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        return [Say(situation.keys or "there are no keys here: a line in, lines out; /help shows the commands")]
