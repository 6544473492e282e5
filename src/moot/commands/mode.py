"""`/mode`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Choose, Reply, Say, Situation
from moot.errors import UsageError
from moot.types.agent import Mode as ModeName

__all__ = ["MODES", "Mode", "next_mode"]

MODES: dict[ModeName, str] = {
    "ask": "everything beyond reading asks",
    "edits": "edits of files here don't ask",
    "plan": "reading only",
    "auto": "nothing asks",
}
"""In the order in which a key goes through them."""

_BY_NAME: dict[str, ModeName] = {name: name for name in MODES}


class Mode:
    help = "what may happen without asking: " + ", ".join(MODES)
    argument = "[MODE]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return [Choice(name, about=about) for name, about in MODES.items()]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Mode", await self.choices(situation))]
        mode = _BY_NAME.get(argument)
        if mode is None:
            raise UsageError(f"no mode {argument!r}; there are: {', '.join(MODES)}")
        situation.wishes.mode = mode
        return [Say(f"mode {mode}: {MODES[mode]}", "dim")]


def next_mode(mode: ModeName) -> ModeName:
    """The one after it."""
    names = list(MODES)
    return names[(names.index(mode) + 1) % len(names)]
