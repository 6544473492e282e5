"""Tools as JSON, the same for all faces."""

from __future__ import annotations

from moot.config.settings import Settings
from moot.errors import UsageError
from moot.plugins import TOOLS
from moot.tools.offers import is_available
from moot.tools.offers import tool as find
from moot.types.canonical import Json, JsonObject
from moot.types.tool import Tool

__all__ = ["tool_facts", "tool_json"]


def tool_facts(name: str, settings: Settings) -> JsonObject:
    """Return the facts about a tool. For a broken plugin they include the error."""
    try:
        return tool_json(find(name), settings)
    except UsageError as error:
        package = TOOLS.package(name)
        facts: JsonObject = {"name": name, "description": error.message, "effects": [], "available": False}
        return {**facts, "package": package, "error": error.message}


def tool_json(tool: Tool, settings: Settings) -> JsonObject:
    """Return the facts about a tool."""
    return {
        "name": tool.name,
        "description": tool.description,
        "effects": list[Json](sorted(tool.effects)),
        "available": is_available(tool, settings),
        "hidden": tool.hidden,
        "concurrent": tool.concurrent,
        "idempotent": tool.idempotent,
        "beta": tool.beta,
        "badge": tool.badge,
        "package": TOOLS.package(tool.name),
    }
