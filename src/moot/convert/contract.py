"""Whether an answer fits the JSON Schema that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from moot.errors import OutputContract
from moot.types.canonical import Json, JsonObject, loads_exact
from moot.types.message import Message

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def check_answer(message: Message, schema: JsonObject) -> Json:
    """The value that the last text of the message is. Raises OutputContract when it is no JSON or does not fit."""
    texts = [str(part.get("text", "")) for part in message.parts if part.get("type") == "text"]
    try:
        value = loads_exact(texts[-1] if texts else "")
    except ValueError as error:
        raise OutputContract(f"the answer is no JSON: {error}", fix="Ask again, or with another model.") from error
    problem = next(problems(value, schema), None)
    if problem is not None:
        raise OutputContract(f"the answer does not fit the schema: {problem}", fix="Ask again, or with another model.")
    return value


def problems(value: Json, schema: Json, path: str = "answer") -> Iterator[str]:
    """What does not fit, in words.

    Looked at: type, enum, const, required, properties, additionalProperties, items, anyOf, oneOf, allOf; the rest is the model's word.
    """
    if schema is False:
        yield f"{path} may not be there"
    if not isinstance(schema, dict):
        return
    yield from _own(value, schema, path)
    if isinstance(value, dict):
        yield from _object(value, schema, path)
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from problems(item, schema.get("items"), f"{path}[{at}]")
    yield from _combined(value, schema, path)


def _own(value: Json, schema: JsonObject, path: str) -> Iterator[str]:
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if names and not any(_is(value, str(name)) for name in names):
        yield f"{path} is {type(value).__name__}, expected {' or '.join(str(name) for name in names)}"
    enum = schema.get("enum")
    if isinstance(enum, list) and value not in enum:
        yield f"{path} is {value!r}, expected one of {enum!r}"
    if "const" in schema and value != schema["const"]:
        yield f"{path} is {value!r}, expected {schema['const']!r}"


def _object(value: JsonObject, schema: JsonObject, path: str) -> Iterator[str]:
    required, known, others = schema.get("required"), schema.get("properties"), schema.get("additionalProperties")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield f"{path}.{name} is missing"
    properties: JsonObject = known if isinstance(known, dict) else {}
    for name, item in value.items():
        if name in properties:
            yield from problems(item, properties[name], f"{path}.{name}")
        elif others is not None:
            yield from problems(item, others, f"{path}.{name}")


def _combined(value: Json, schema: JsonObject, path: str) -> Iterator[str]:
    for part in _schemas(schema, "allOf"):
        yield from problems(value, part, path)
    for word in ("anyOf", "oneOf"):
        choices = _schemas(schema, word)
        fitting = [choice for choice in choices if next(problems(value, choice, path), None) is None]
        if choices and (not fitting or (word == "oneOf" and len(fitting) > 1)):
            yield f"{path} fits {len(fitting)} of the schemas of {word}"


def _schemas(schema: JsonObject, word: str) -> list[Json]:
    found = schema.get(word)
    return found if isinstance(found, list) else []


def _is(value: Json, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))
