"""`/agent`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.agents.known.finding import agents_here
from moot.commands.command import Choice, Choose, Reply, Say, Situation
from moot.runtime.setup import find_agent

__all__ = ["Agent"]


class Agent:
    help = "let another agent of the configuration answer"
    argument = "[AGENT]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        agents = agents_here(situation.engine.runtime.settings)
        return [Choice(name, about=agent.description) for name, agent in agents.items()]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Agent", await self.choices(situation))]
        find_agent(situation.engine.runtime.settings, argument, {})
        situation.wishes.agent, situation.wishes.model = argument, None
        return [Say(f"agent {argument} from the next prompt on", "dim")]
