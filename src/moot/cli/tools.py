"""`moot tools`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.configured import configured
from moot.cli.options import AsJson, Out
from moot.cli.parameters import Parameter
from moot.cli.tables import print_table
from moot.config.settings import Settings
from moot.plugins import TOOLS
from moot.tools.offers import tool as find
from moot.tools.schema import definition
from moot.types.canonical import Json, JsonObject
from moot.types.tool import Available, Tool


def list_(*, json: AsJson = False, output: Out) -> None:
    """Every tool, and whether it can be used here."""
    settings = configured(output).settings
    tools = [tool_json(find(name), settings) for name in TOOLS.names()]
    if json:
        output.json({"data": list[Json](tools), "next_cursor": None})
        return
    rows = [[str(tool["name"]), _words(tool["effects"]), _state(tool), _first_sentence(str(tool["description"]))] for tool in tools]
    print_table(output, ["NAME", "EFFECTS", "STATE", "WHAT IT DOES"], rows)


def show(name: Annotated[str, Parameter(help="Of the tool.")], /, *, json: AsJson = False, output: Out) -> None:
    """What a model is told of a tool."""
    settings = configured(output).settings
    tool = find(name)
    facts: JsonObject = {**tool_json(tool, settings), "schema": definition(tool).schema}
    if json:
        output.json(facts)
        return
    for key, value in facts.items():
        output.line(f"{key}: {value if isinstance(value, str) else output.to_json(value)}")


def tool_json(tool: Tool, settings: Settings) -> JsonObject:
    """The facts of a tool."""
    available = tool.available(settings.tools.get(tool.name, {})) if isinstance(tool, Available) else True
    return {
        "name": tool.name,
        "description": tool.description,
        "effects": list[Json](sorted(tool.effects)),
        "available": available,
        "hidden": tool.hidden,
        "concurrent": tool.concurrent,
        "idempotent": tool.idempotent,
        "beta": tool.beta,
        "badge": tool.badge,
    }


def _state(tool: JsonObject) -> str:
    if not tool["available"]:
        return "needs configuration"
    return "only by name" if tool["hidden"] else "offered"


def _words(value: Json) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else ""


def _first_sentence(text: str) -> str:
    return text.strip().partition("\n")[0].partition(". ")[0]
