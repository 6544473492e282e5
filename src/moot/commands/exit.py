"""`/exit`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Leave, Reply, Situation

__all__ = ["Exit"]


class Exit:
    help = "leave; everything is saved already"
    argument = ""

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        return [Leave()]
