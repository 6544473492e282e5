"""A tool as a model is told of it, without the tool itself where it is a built-in one."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, cast

from moot.plugins.registry import attribute
from moot.tools.client import ClientTool
from moot.tools.standing_in import StandIn
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.provider import ToolDefinition
from moot.types.tool import Tool

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["definition", "definition_digest", "parse", "subject_of"]


def definition(tool: Tool) -> ToolDefinition:
    """What a model gets: the JSON Schema without titles and references, the examples."""
    return ToolDefinition(tool.name, tool.description, _schema(tool), tool.examples)


def definition_digest(tool: Tool) -> bytes:
    """32 bytes that change with anything a model or a person was told of the tool."""
    told: JsonObject = {"name": tool.name, "description": tool.description, "schema": _schema(tool)}
    return blake2b(dumps(told), digest_size=32).digest()


def parse(tool: Tool, input: Json) -> BaseModel | str:
    """The arguments, or words for the model on what does not fit and what is expected."""
    # reached by its path: most runs call no tool, and pydantic costs as much as three bare interpreters
    return attribute("moot.tools.arguments:parse")(tool, input)


def subject_of(input: Json) -> str:
    """What the rules of the permissions match of a call: its command, path or URL; empty when it has none."""
    found = (input.get(name) for name in _SUBJECTS) if isinstance(input, dict) else ()
    return next((value for value in found if isinstance(value, str)), "")


_SUBJECTS = ("command", "path", "url")


def _schema(tool: Tool) -> JsonObject:
    if isinstance(tool, StandIn | ClientTool):
        return tool.schema
    return cast("JsonObject", attribute("moot.tools.arguments:schema_of")(tool.arguments))
