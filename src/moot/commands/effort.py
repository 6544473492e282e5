"""`/effort`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from moot.commands.command import Choice, Choose, Reply, Say, Situation
from moot.errors import UsageError
from moot.types.model import Effort as EffortName

__all__ = ["Effort"]

_EFFORTS: dict[str, EffortName] = {name: name for name in get_args(EffortName)}


class Effort:
    help = "how much the model reasons before it answers"
    argument = "[EFFORT]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return [Choice(name) for name in _EFFORTS]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Effort", await self.choices(situation))]
        effort = _EFFORTS.get(argument)
        if effort is None:
            raise UsageError(f"no effort {argument!r}; there are: {', '.join(_EFFORTS)}")
        situation.wishes.effort = effort
        return [Say(f"effort {effort} from the next prompt on", "dim")]
