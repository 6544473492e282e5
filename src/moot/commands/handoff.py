"""`/handoff`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.agents.known.finding import agents_here
from moot.commands.command import Choice, Choose, Reply, Say, Situation
from moot.errors import UsageError
from moot.runtime.setup import find_agent

__all__ = ["Handoff"]


class Handoff:
    help = "carry this conversation on with another agent, which is told what was said"
    argument = "[AGENT]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        agents = agents_here(situation.engine.runtime.settings)
        now = await situation.current()
        return [Choice(name, about=agent.description) for name, agent in agents.items() if now is None or name != now.agent]

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Hand over to", await self.choices(situation))]
        agent = find_agent(situation.engine.runtime.settings, argument, {})
        found = await situation.current()
        if found is None:
            raise UsageError("there is nothing to hand over yet", fix=f"/agent {argument}")
        situation.wishes.agent, situation.wishes.model = argument, None
        name = found.title or "the conversation"
        how = "with all that was said" if agent.agent_type == "moot" else "which is told what was said before, in a session of its own"
        return [Say(f"{argument} carries {name} on from the next prompt, {how}; nothing of it is changed", "dim")]
