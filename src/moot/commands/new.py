"""`/new`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Go, Reply, Situation

__all__ = ["New"]


class New:
    help = "begin a new conversation; this one stays where it is"
    argument = ""

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return ()

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        return [Go(None)]
