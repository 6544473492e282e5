"""The commands `moot tools list` and `show`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import paged
from moot.cli.tables import print_fields, print_table
from moot.plugins import TOOLS
from moot.tools.described import tool_facts, tool_json
from moot.tools.offers import tool as find
from moot.tools.schema import definition
from moot.types.canonical import Json, JsonObject


def list_(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Print the tools and whether they are available."""
    settings = configured(output).settings
    page = paged([tool_facts(name, settings) for name in TOOLS.names()], limit, cursor, "name")
    tools = page.items
    if json:
        output.json(page.to_json())
        return
    rows = [
        [str(tool["name"]), _joined(tool["effects"]), _state(tool), str(tool["package"]), _first_sentence(str(tool["description"]))]
        for tool in tools
    ]
    head = ["NAME", "EFFECTS", "STATE", "PACKAGE", "DESCRIPTION"]
    if not any(tool["package"] for tool in tools):  # all are built in
        head, rows = [*head[:3], head[4]], [[*row[:3], row[4]] for row in rows]
    print_table(output, head, rows)
    page.say_more(output)


def show(name: Annotated[str, Parameter(kind="tool", help="Name of the tool.")], /, *, json: AsJson = False, output: Out) -> None:
    """Print a tool's description and schema as sent to models."""
    settings = configured(output).settings
    tool = find(name)
    facts: JsonObject = {**tool_json(tool, settings), "schema": definition(tool).schema}
    if json:
        output.json(facts)
        return
    print_fields(output, facts)


def _state(tool: JsonObject) -> str:
    if tool.get("error"):
        return "broken"
    if not tool["available"]:
        return "needs configuration"
    return "only by name" if tool["hidden"] else "offered"


def _joined(value: Json) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else ""


def _first_sentence(text: str) -> str:
    return text.strip().partition("\n")[0].partition(". ")[0]
