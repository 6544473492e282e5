"""Code that needs a tool's pydantic model: validation of a model's arguments, and their JSON Schema."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from moot.plugins.registry import hint
from moot.types.canonical import Json, JsonObject, loads_exact
from moot.types.tool import Tool


class Anything(BaseModel):
    """An object with arbitrary fields, kept unchanged."""

    model_config = ConfigDict(extra="allow")


_SHOWN_ERRORS = 5
_STRUCTURES = frozenset({"list_type", "tuple_type", "dict_type", "model_type", "model_attributes_type"})


def parse(tool: Tool, input: Json) -> BaseModel | str:
    """Return the validated arguments, or an error message for the model that says what is wrong and what is expected."""
    expected = f"Arguments of {tool.name}: {_signature(schema_of(tool.arguments))}."
    if not isinstance(input, dict):
        return f"The arguments must be a JSON object, not {_word(input)}. {expected}"
    if unknown := _unknown(tool.arguments, input):
        return f"{unknown} {expected}"
    try:
        return tool.arguments.model_validate(input)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        repaired = _unquoted(input, {str(problem["loc"][0]) for problem in problems if problem["type"] in _STRUCTURES})
    if repaired is not None:
        return parse(tool, repaired)
    messages = [
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}, got {_short(problem['input'])}."
        for problem in problems[:_SHOWN_ERRORS]
    ]
    return " ".join([*messages, expected])


def _unquoted(value: JsonObject, names: set[str]) -> JsonObject | None:
    """Parse fields that small models wrote as JSON text instead of a list or object. Return the changed object; None if nothing changed."""
    parsed: JsonObject = {}
    for name in names:
        text = value.get(name)
        if not isinstance(text, str):
            continue
        try:
            inner = loads_exact(text)
        except ValueError:
            continue
        if isinstance(inner, list | dict):
            parsed[name] = inner
    return {**value, **parsed} if parsed else None


def _unknown(arguments: type[BaseModel], input: JsonObject) -> str:
    if arguments.model_config.get("extra") == "allow":
        return ""
    known = {field.alias or name for name, field in arguments.model_fields.items()} | set(arguments.model_fields)
    for name in input:
        if name not in known:
            return f"Unknown argument {name!r}.{hint(name, list(known))}"
    return ""


def _word(value: object) -> str:
    match value:
        case None:
            return "null"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _signature(schema: JsonObject) -> str:
    properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
    required = cast("list[str]", schema.get("required") or [])
    fields = [f"{name} ({_type_word(field)}{', required' if name in required else ''})" for name, field in properties.items()]
    return ", ".join(fields) or "no arguments"


def _type_word(schema: JsonObject) -> str:
    if isinstance(choices := schema.get("enum"), list):
        return " | ".join(str(choice) for choice in choices)
    kind = schema.get("type")
    if kind == "array" and isinstance(items := schema.get("items"), dict):
        return f"list of {_type_word(items)}"
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return "{" + _signature(schema) + "}"
    return kind if isinstance(kind, str) else "any"


@cache
def schema_of(arguments: type[BaseModel]) -> JsonObject:
    """Return the JSON Schema of a pydantic model, without titles and without references unless it is recursive."""
    schema: dict[str, Any] = arguments.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})
    slim = cast("JsonObject", _slim(schema, definitions, ()))
    slim.pop("description", None)  # the class docstring is not for models
    if recursive := {name: _slim(body, {}, ()) for name, body in definitions.items() if f"#/$defs/{name}" in str(slim)}:
        slim["$defs"] = cast("JsonObject", recursive)
    return slim


def _slim(node: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """Return the schema without titles, null alternatives and non-recursive references."""
    if isinstance(node, list):
        return [_slim(item, definitions, inside) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("dict[str, Any]", node)
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name in definitions and name not in inside:
        # class docstrings are not for models; field descriptions are kept
        return _slim({**_without(definitions[name], "description"), **_without(schema, "$ref")}, definitions, (*inside, name))
    alternatives = [item for item in schema.get("anyOf", ()) if item != {"type": "null"}]
    if len(alternatives) == 1:
        return _slim({**alternatives[0], **_without(schema, "anyOf", "default")}, definitions, inside)
    return {
        key: _slim_value(key, value, definitions, inside) for key, value in schema.items() if key != "title" or not isinstance(value, str)
    }


def _slim_value(key: str, value: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if key == "properties":  # the keys are argument names, not keywords, so `title` may be one
        return {name: _slim(field, definitions, inside) for name, field in value.items()}
    return value if key in ("default", "enum", "const", "examples") else _slim(value, definitions, inside)


def _without(schema: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in keys}
