"""`moot agents`."""

from __future__ import annotations

import os
import re
from typing import Annotated

from moot.agents.known.finding import agent_called, agents_here, known_agents, presence_of
from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import Paged, paged
from moot.cli.tables import print_table
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
    every: Annotated[bool, Parameter(name="--all", help="Also known agents whose program is not here.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Every agent that can be run here: those of the configuration, and outside agents whose program was found."""
    settings = configured(output).settings
    here = agents_here(settings)
    absent = {name: entry.agent() for name, entry in known_agents().items() if name not in here}
    page: Paged = paged([_facts(agent) for agent in (here | absent if every else here).values()], limit, cursor, "name")
    if json:
        output.json(page.to_json())
        return
    rows = [[str(item["name"]), str(item["model"] or "its own"), str(item["agent_type"]), *_told(item)] for item in page.items]
    print_table(output, ["NAME", "MODEL", "TYPE", "STATE", "WHAT FOR"], rows)
    for item in page.items:
        if item["missing"]:
            output.say(f"moot: {item['name']}: {item['missing']}; {item['install']}", "yellow")
    if absent and not every:
        output.say(f"moot: not installed: {len(absent)} more; moot agents list --all", "dim")
    page.say_more(output)


def show(name: Annotated[str, Parameter(kind="agent", help="Its name.")], /, *, json: AsJson = False, output: Out) -> None:
    """All settings of an agent, and whether its program is here."""
    facts = _facts(agent_of(configured(output).settings, name))
    if json:
        output.json(facts)
        return
    for key, value in facts.items():
        output.line(f"{key}: {value if isinstance(value, str) else output.to_json(value)}")


def add(
    name: Annotated[str, Parameter(help="What -a will take: letters, digits, - and _.")],
    /,
    *command: Annotated[str, Parameter(help="The program that speaks for it, behind --; none for moot's own.")],
    type_: Annotated[str, Parameter(name="--type", help="The agent service: moot, or an outside agent's.")] = "",
    model: Annotated[str, Parameter(name=("--model", "-m"), kind="model", help="Its model; an outside agent has its own.")] = "",
    description: Annotated[str, Parameter(help="What it is for, in a few words.")] = "",
    instructions: Annotated[str, Parameter(help="What it is told before every conversation.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Writes an agent into your configuration, checked first."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} can't be an agent's name; expected letters, digits, - and _")
    if name in configured(output).settings.agents:
        raise UsageError(f"there is an agent named {name!r} already", fix=f"moot config edit, or: moot agents show {name}")
    kind = type_ or (f"acp:{name}" if command else "moot")
    if kind.partition(":")[0] not in AGENTS:
        raise UsageError(AGENTS.unknown(kind), fix="moot agents list --all")
    path = home_of(os.environ) / FILE
    set_value(path, f"agents.{name}", _written(kind, command, model, description, instructions), os.environ)
    agent = agent_of(configured(output).settings, name)
    if json:
        output.json(_facts(agent))
        return
    output.say(f"moot: {path}: agents.{name} is set", "green")
    found = presence_of(agent)
    if found.missing:
        output.say(f"moot: {name}: {found.missing}; {found.install}", "yellow")
    output.say(f"moot: try it: moot agents test {name}", "dim")


def _written(kind: str, command: tuple[str, ...], model: str, description: str, instructions: str) -> JsonObject:
    wanted: JsonObject = {"description": description, "agent_type": kind, "model": model, "instructions": instructions}
    options: JsonObject = {"options": {"command": list[Json](command)}} if command else {}
    return {key: value for key, value in wanted.items() if value or (key == "model" and kind != "moot")} | options


def agent_of(settings: Settings, name: str) -> Agent:
    """The agent of that name. Raises UsageError."""
    agent = agent_called(settings, name)
    if agent is None:
        known = list(agents_here(settings))
        hint = attribute("moot.plugins.nearest:hint")(name, [*known, *known_agents()])
        raise UsageError(f"no agent named {name!r}{hint} known: {', '.join(known)}", fix="moot agents list --all")
    return agent


def _facts(agent: Agent) -> JsonObject:
    return agent_json(agent) | presence_of(agent).to_json()


def _told(item: JsonObject) -> tuple[str, str]:
    return "ready" if item["ready"] else "missing", str(item["description"])
