"""Placeholders for the built-in tools, made from a table of their definitions, so that a tool is only imported when it is called."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from moot.plugins import TOOLS
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.model import ModelRole
from moot.types.tool import Available, Effect, NeedsModel, Tool, ToolContext, ToolOutput, View

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["FILE", "StandIn", "generated_table", "stand_ins"]

FILE = Path(__file__).with_name("definitions.json")
"""Written by `python docs/generate.py`."""

_FLAGS = ("concurrent", "idempotent", "hidden", "beta")


class StandIn:
    """A placeholder for a built-in tool. The tool itself, with pydantic and its other imports, is loaded when it is called."""

    def __init__(self, name: str, row: JsonObject) -> None:
        self.name = name
        self.description = cast("str", row["description"])
        self.schema = cast("JsonObject", row["schema"])
        """The result of `moot.tools.arguments.schema_of` for its arguments."""
        self.examples = tuple(cast("list[JsonObject]", row["examples"]))
        self.effects = frozenset(cast("list[Effect]", row["effects"]))
        self.model_type = cast("ModelRole | None", row["model_type"])
        self.badge = cast("str", row["badge"])
        self.concurrent, self.idempotent, self.hidden, self.beta = (row[flag] is True for flag in _FLAGS)

    @cached_property
    def tool(self) -> Tool:
        """The real tool."""
        return cast("Tool", TOOLS.make(self.name))

    @property
    def arguments(self) -> type[BaseModel]:
        return self.tool.arguments

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        return await self.tool.run(arguments, context)

    def doing(self, arguments: Any) -> View:
        return self.tool.doing(arguments)

    def done(self, arguments: Any, output: ToolOutput) -> View:
        return self.tool.done(arguments, output)


class _Configured(StandIn):
    """A placeholder for a tool that needs settings. If there are some, the tool itself is asked whether it is available."""

    def available(self, settings: JsonObject) -> bool:
        return bool(settings) and cast("Available", self.tool).available(settings)


def stand_ins() -> dict[str, StandIn]:
    """Return the built-in tools by name, from the table."""
    rows = cast("dict[str, JsonObject]", loads_object(FILE.read_bytes()))
    return {name: (_Configured if row["configured"] else StandIn)(name, row) for name, row in rows.items()}


def generated_table() -> JsonObject:
    """Return the table for the current tools, importing all of them."""
    tools = [cast("Tool", TOOLS.make(name)) for name in TOOLS.names() if not TOOLS.package(name)]
    return {tool.name: _row(tool) for tool in tools}


def _row(tool: Tool) -> JsonObject:
    flags: JsonObject = {flag: getattr(tool, flag) for flag in _FLAGS}
    schema = attribute("moot.tools.arguments:schema_of")(tool.arguments)
    row: JsonObject = {
        "description": tool.description,
        "schema": schema,
        "examples": list(tool.examples),
        "effects": list[Json](sorted(tool.effects)),
        "badge": tool.badge,
        "model_type": tool.model_type if isinstance(tool, NeedsModel) else None,
        "configured": isinstance(tool, Available),
        **flags,
    }
    return loads_object(dumps(row))  # as loaded from the file
