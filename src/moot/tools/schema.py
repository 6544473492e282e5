"""Tool definitions for models. Built-in tools are not imported for them."""

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
    """Return the definition sent to a model: the JSON Schema without titles and references, and the examples."""
    return ToolDefinition(tool.name, tool.description, _schema(tool), tool.examples)


def definition_digest(tool: Tool) -> bytes:
    """Return a 32-byte hash of the definition."""
    definition_: JsonObject = {"name": tool.name, "description": tool.description, "schema": _schema(tool)}
    return blake2b(dumps(definition_), digest_size=32).digest()


def parse(tool: Tool, input: Json) -> BaseModel | str:
    """Return the validated arguments, or an error message for the model that says what is wrong and what is expected."""
    # imported here because most runs call no tool, and importing pydantic takes as long as starting Python three times
    return attribute("moot.tools.arguments:parse")(tool, input)


def subject_of(input: Json) -> str:
    """Return the part of a call that permission rules match: its command, path or URL. Empty if there is none."""
    found = (input.get(name) for name in _SUBJECTS) if isinstance(input, dict) else ()
    return next((value for value in found if isinstance(value, str)), "")


_SUBJECTS = ("command", "path", "url")


def _schema(tool: Tool) -> JsonObject:
    if isinstance(tool, StandIn | ClientTool):
        return tool.schema
    return cast("JsonObject", attribute("moot.tools.arguments:schema_of")(tool.arguments))
