"""The command `moot agents test`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import anyio

from moot.agents.known.finding import presence_of
from moot.cli.agents import agent_of
from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.trying import try_model
from moot.config.settings import Settings
from moot.engine import open_engine
from moot.errors import ConfigError, ProviderError
from moot.providers.trying import QUESTION
from moot.types.agent import Agent
from moot.types.canonical import JsonObject
from moot.types.exchange import Failure
from moot.types.part import text_of, text_part
from moot.types.run import Prompt


async def test(
    name: Annotated[str, Parameter(kind="agent", help="Name of the agent.")],
    /,
    *,
    timeout: Annotated[float, Parameter(metavar="SECONDS", above=0, help="Maximum time for the answer.")] = 120.0,
    json: AsJson = False,
    output: Out,
) -> int:
    """Run a short prompt with an agent in an empty directory, with every permission denied. Nothing is stored."""
    settings = configured(output).settings
    agent = agent_of(settings, name)
    if agent.agent_type == "moot":
        return await try_model(settings, agent.model, output, as_json=json)
    if not (found := presence_of(agent)).ready:
        raise ConfigError(f"Agent {name!r} is not available: {found.missing}.", fix=found.install)
    return await _try_agent(settings, agent, output, seconds=timeout, as_json=json)


async def _try_agent(settings: Settings, agent: Agent, output: Output, *, seconds: float, as_json: bool) -> int:
    """Run an outside agent once in a temporary home and directory. Raise ProviderError if the run fails."""
    with TemporaryDirectory(prefix="moot-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        temporary = replace(settings, home=Path(folder) / "home", agents={**settings.agents, agent.name: agent})
        async with open_engine(temporary) as engine:
            prompt = Prompt(
                (text_part(QUESTION),), directory=str(work), agent=agent.name, settings={"unattended": "deny", "timeout": seconds}
            )
            started = anyio.current_time()
            run = (await engine.runs.submit(prompt)).run
            ended = await engine.runs.wait(run.id)
            duration = anyio.current_time() - started
            message = await engine.store.conversations.message(ended.message)
    if ended.status != "finished":
        failure = ended.error or Failure(f"the run ended with status {ended.status}")
        raise ProviderError(f"{agent.name}: {failure.message}", fix=failure.fix)
    text = " ".join(text_of(message.parts).split())
    if as_json:
        facts: JsonObject = {
            "agent": agent.name,
            "text": text,
            "seconds": round(duration, 3),
            "usage": ended.usage.to_json(),
            "cost": ended.cost,
        }
        output.json(facts)
    else:
        output.line(f"{agent.name}: {text or '(no text)'}")
        output.say(f"moot: answered in {duration:.1f} s", "green")
    return 0
