"""The commands `moot agents list`, `show` and `add`."""

from __future__ import annotations

import os
import re
from typing import Annotated

from moot.agents.known.finding import agent_called, agents_here, known_agents, presence_of
from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import Paged, paged
from moot.cli.tables import print_fields, print_table
from moot.config.home import home_of
from moot.config.loading import FILE
from moot.config.settings import Settings
from moot.config.writing import set_value
from moot.convert.described import agent_json
from moot.errors import UsageError
from moot.plugins import AGENTS
from moot.plugins.registry import attribute
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)


def list_(
    *,
    every: Annotated[bool, Parameter(name="--all", help="Include known agents that are not installed.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the configured agents and the outside agents whose program is installed."""
    settings = configured(output).settings
    here = agents_here(settings)
    absent = {name: entry.agent() for name, entry in known_agents().items() if name not in here}
    page: Paged = paged([_facts(agent) for agent in (here | absent if every else here).values()], limit, cursor, "name")
    if json:
        output.json(page.to_json())
        return
    rows = [[str(item["name"]), str(item["model"] or "its own"), str(item["agent_type"]), *_state(item)] for item in page.items]
    print_table(output, ["NAME", "MODEL", "TYPE", "STATE", "DESCRIPTION"], rows)
    for item in page.items:
        if item["missing"]:
            output.say(f"moot: {item['name']}: {item['missing']}; {item['install']}", "yellow")
    if absent and not every:
        output.say(f"moot: {len(absent)} more agents are not installed; 'moot agents list --all' shows them", "dim")
    page.say_more(output)


def show(name: Annotated[str, Parameter(kind="agent", help="Name of the agent.")], /, *, json: AsJson = False, output: Out) -> None:
    """Print the settings of an agent and whether its program is installed."""
    facts = _facts(agent_of(configured(output).settings, name))
    if json:
        output.json(facts)
        return
    print_fields(output, facts)


def add(
    name: Annotated[str, Parameter(help="Name of the agent: letters, digits, - and _.")],
    /,
    *command: Annotated[str, Parameter(help="Command that starts an outside agent, after --.")],
    type_: Annotated[str, Parameter(name="--type", metavar="TYPE", help="Agent type: moot, or the type of an outside agent.")] = "",
    model: Annotated[
        str, Parameter(name=("--model", "-m"), kind="model", help="Model of the agent. Outside agents have a default model of their own.")
    ] = "",
    description: Annotated[str, Parameter(metavar="TEXT", help="Short description.")] = "",
    instructions: Annotated[str, Parameter(metavar="TEXT", help="System prompt.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Add an agent to the user's configuration file after checking it."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"Invalid agent name {name!r}: use letters, digits, - and _.")
    if name in configured(output).settings.agents:
        raise UsageError(
            f"Agent {name!r} already exists.", fix=f"Show it with 'moot agents show {name}', or change it with 'moot config edit'."
        )
    kind = type_ or (f"acp:{name}" if command else "moot")
    if kind.partition(":")[0] not in AGENTS:
        raise UsageError(AGENTS.unknown(kind), fix="moot agents list --all")
    path = home_of(os.environ) / FILE
    set_value(path, f"agents.{name}", _entry(kind, command, model, description, instructions), os.environ)
    agent = agent_of(configured(output).settings, name)
    if json:
        output.json(_facts(agent))
        return
    output.say(f"moot: added agents.{name} to {path}", "green")
    found = presence_of(agent)
    if found.missing:
        output.say(f"moot: {name}: {found.missing}; {found.install}", "yellow")
    output.say(f"moot: test it with 'moot agents test {name}'", "dim")


def _entry(kind: str, command: tuple[str, ...], model: str, description: str, instructions: str) -> JsonObject:
    wanted: JsonObject = {"description": description, "agent_type": kind, "model": model, "instructions": instructions}
    options: JsonObject = {"options": {"command": list[Json](command)}} if command else {}
    return {key: value for key, value in wanted.items() if value or (key == "model" and kind != "moot")} | options


def agent_of(settings: Settings, name: str) -> Agent:
    """Return the agent with this name. Raise UsageError if it does not exist."""
    agent = agent_called(settings, name)
    if agent is None:
        known = list(agents_here(settings))
        nearest = attribute("difflib:get_close_matches")(name, [*known, *known_agents()], n=1)
        suggestion = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise UsageError(f"Agent {name!r} not found.{suggestion} Available agents: {', '.join(known)}.", fix="moot agents list --all")
    return agent


def _facts(agent: Agent) -> JsonObject:
    return agent_json(agent) | presence_of(agent).to_json()


def _state(item: JsonObject) -> tuple[str, str]:
    return "ready" if item["ready"] else "missing", str(item["description"])
