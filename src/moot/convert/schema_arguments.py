"""JSON Schemas of tools, reduced for a very small model: no references, no optional choices, every string bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from moot.types.canonical import Json, JsonObject
from moot.types.provider import ToolDefinition

REPLY_LENGTH = 800
"""Maximum length of an answer."""
STRING_LENGTH = 200
"""Maximum length of any other string."""
LONG_LENGTH = 1000
"""Maximum length of a string that is a command or file content."""
_LONG = frozenset({"command", "content", "old_text", "new_text"})
_ALSO = {"shell": ("command",)}
"""Tool → optional arguments that a small model should fill in."""
_ITEMS = 4
_DEPTH = 6
_KEPT = frozenset({"minimum", "maximum"})
_STRING: JsonObject = {"type": "string", "maxLength": STRING_LENGTH}


def answer_schema(tools: Sequence[ToolDefinition]) -> JsonObject:
    """Return one alternative for each tool, `{"tool", "arguments"}`, and `{"reply"}`."""
    alternatives: list[Json] = [_object({"tool": {"const": tool.name}, "arguments": small_arguments(tool)}) for tool in tools]
    alternatives.append(_object({"reply": {"type": "string", "minLength": 1, "maxLength": REPLY_LENGTH}}))
    return {"anyOf": alternatives}


def small_arguments(tool: ToolDefinition) -> JsonObject:
    """Return the schema of the required arguments only: a small model fills in every field it sees, usually with nonsense."""
    root = tool.schema
    properties = _objects(root.get("properties"))
    names = _names(root.get("required"), properties) or [name for name in _ALSO.get(tool.name, ()) if name in properties]
    return _object({name: _small(properties[name], root, 1, name) for name in names})


def _small(schema: JsonObject, root: JsonObject, depth: int, called: str = "") -> JsonObject:
    if depth > _DEPTH:
        return _STRING
    schema = _resolved(schema, root)
    if "const" in schema or "enum" in schema:
        return {key: value for key, value in schema.items() if key in ("const", "enum")}
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    match schema.get("type"):
        case "integer" | "number" | "boolean" | "null" as kind:
            return {"type": kind, **kept}
        case "array":
            items = schema.get("items")
            inner = _small(items, root, depth + 1) if isinstance(items, dict) else _STRING
            most = _least(schema.get("maxItems"), _ITEMS)
            return {"type": "array", "items": inner, "minItems": min(_number(schema.get("minItems")), most), "maxItems": most}
        case "object":
            properties = _objects(schema.get("properties"))
            names = _names(schema.get("required"), properties) or list(properties)
            return _object({name: _small(properties[name], root, depth + 1, name) for name in names})
        case _:
            return {**_STRING, "maxLength": _least(schema.get("maxLength"), LONG_LENGTH if called in _LONG else STRING_LENGTH)}


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Follow references and the first non-null choice of an anyOf; stop in a cycle."""
    for _ in range(_DEPTH):
        reference, choices = schema.get("$ref"), schema.get("anyOf")
        if isinstance(reference, str):
            schema = _objects(root.get("$defs")).get(reference.rpartition("/")[2], {})
        elif isinstance(choices, list) and choices:
            real = [choice for choice in choices if isinstance(choice, dict) and choice.get("type") != "null"]
            schema = real[0] if real else {}
        else:
            break
    return schema


def _object(properties: dict[str, Json] | JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _objects(value: Json) -> dict[str, JsonObject]:
    if not isinstance(value, dict):
        return {}
    return {name: cast("JsonObject", item) for name, item in value.items() if isinstance(item, dict)}


def _names(required: Json, properties: dict[str, JsonObject]) -> list[str]:
    return [name for name in properties if isinstance(required, list) and name in required]


def _least(value: Json, limit: int) -> int:
    return min(_number(value), limit) or limit


def _number(value: Json) -> int:
    return value if isinstance(value, int) and value > 0 else 0
