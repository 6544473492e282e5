"""`/effort`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from moot.commands.command import Choice, Choose, Reply, Say, Situation
from moot.errors import UsageError
from moot.types.model import Effort as EffortName

__all__ = ["Effort"]

EFFORTS: tuple[EffortName, ...] = get_args(EffortName)


class Effort:
    help = "how much the model reasons before it answers"
    argument = "[EFFORT]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return [Choice(name) for name in EFFORTS]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Effort", await self.choices(situation))]
        effort = next((name for name in EFFORTS if name == argument), None)
        if effort is None:
            raise UsageError(f"no effort {argument!r}; there are: {', '.join(EFFORTS)}")
        situation.wishes.effort = effort
        return [Say(f"effort {effort} from the next prompt on", "dim")]
