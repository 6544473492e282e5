"""`/tools`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Reply, Say, Situation
from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.runtime.setup import find_agent
from moot.tools.offers import offered

__all__ = ["Tools"]


class Tools:
    help = "show the tools, or offer only some: names, all or none"
    argument = "[NAME …|all|none]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return [Choice("all", about="the agent's own"), Choice("none"), *(Choice(name) for name in TOOLS.names())]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        names = argument.replace(",", " ").split()
        if names == ["all"]:
            situation.wishes.tools = None
        elif names == ["none"]:
            situation.wishes.tools = ()
        elif names:
            unknown = next((name for name in names if name not in TOOLS), None)
            if unknown is not None:
                raise UsageError(TOOLS.unknown(unknown), fix="/tools")
            situation.wishes.tools = names
        return [Say(await _shown(situation))]


async def _shown(situation: Situation) -> str:
    settings = situation.engine.runtime.settings
    conversation = await situation.current()
    agent = find_agent(settings, situation.wishes.agent or (conversation.agent if conversation else "default"), situation.wishes.settings())
    tools = offered(settings, agent)
    if not tools:
        return "no tools are offered"
    width = max(len(tool.name) for tool in tools) + 2
    return "\n".join(f"{tool.name:{width}}{tool.description.partition('.')[0]}" for tool in tools)
