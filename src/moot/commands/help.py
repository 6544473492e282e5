"""`/help`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Reply, Say, Situation
from moot.commands.naming import find, names

__all__ = ["Help"]


class Help:
    help = "what there is to type and to press"
    argument = "[COMMAND]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return [Choice(name, about=find(name).help) for name in names()]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if argument:
            name = argument.removeprefix("/")
            return [Say(_line(name, 0))]
        width = max(len(f"/{name} {find(name).argument}".rstrip()) for name in names()) + 2
        lines = [_line(name, width) for name in names()]
        return [Say("\n".join([*lines, "", situation.keys] if situation.keys else lines))]


def _line(name: str, width: int) -> str:
    command = find(name)
    return f"{f'/{name} {command.argument}'.rstrip():{width}}  {command.help}".strip()
