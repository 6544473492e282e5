"""`moot agents`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.configured import configured
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import Paged, paged
from moot.cli.parameters import Parameter
from moot.cli.tables import print_table
from moot.convert.described import agent_json
from moot.errors import UsageError
from moot.plugins.registry import attribute


def list_(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Every agent of the configuration."""
    agents = [agent_json(agent) for agent in configured(output).settings.agents.values()]
    page: Paged = paged(agents, limit, cursor, "name")
    if json:
        output.json(page.to_json())
        return
    rows = [[str(item["name"]), str(item["model"]), str(item["agent_type"]), str(item["description"])] for item in page.items]
    print_table(output, ["NAME", "MODEL", "TYPE", "WHAT FOR"], rows)
    page.say_more(output)


def show(name: Annotated[str, Parameter(kind="agent", help="Its name.")], /, *, json: AsJson = False, output: Out) -> None:
    """All settings of an agent."""
    agents = configured(output).settings.agents
    if name not in agents:
        hint = attribute("moot.plugins.nearest:hint")(name, list(agents))
        raise UsageError(f"no agent named {name!r}{hint} known: {', '.join(agents)}", fix="moot agents list")
    facts = agent_json(agents[name])
    if json:
        output.json(facts)
        return
    for key, value in facts.items():
        output.line(f"{key}: {value if isinstance(value, str) else output.to_json(value)}")
