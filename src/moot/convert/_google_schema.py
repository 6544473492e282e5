"""JSON Schema reduced to the subset of OpenAPI that Google's models accept (reference: Gemini API, Schema). They reject anything else."""

from __future__ import annotations

from moot.types.canonical import Json, JsonObject

_KEPT = ("title", "description", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "default")
_FORMATS = {"string": ("date-time",), "number": ("float", "double"), "integer": ("int32", "int64")}
_DEPTH = 12
"""Depth to which a recursive schema is expanded; below it any object is accepted."""

_NESTED = 3
"""Maximum nesting of `allOf` in `allOf`."""

_SIZE = 500
"""Maximum number of expanded subschemas, because references that fan out would grow exponentially."""


def subset(schema: JsonObject) -> JsonObject:
    """Reduce the schema to the subset: expand references, convert `const` and type lists, drop the rest."""
    return _Reduction(schema).reduced(schema, 0)


class _Reduction:
    """The reduction of one schema."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _SIZE

    def reduced(self, schema: Json, depth: int) -> JsonObject:
        found = _resolved(schema, self._root)
        self._left -= 1
        if depth > _DEPTH or self._left < 0:
            return {"type": "object"}
        kinds, nullable = _types(found)
        choices = _choices(found)
        reduced: JsonObject = {name: found[name] for name in _KEPT if found.get(name) is not None}
        if any(_is_null(choice, self._root) for choice in choices):
            nullable, choices = True, [choice for choice in choices if not _is_null(choice, self._root)]
        if len(kinds) > 1:
            choices = [{**found, "type": kind} for kind in kinds]
            reduced = {name: reduced[name] for name in ("title", "description") if name in reduced}
        if choices:
            written = [self.reduced(choice, depth + 1) for choice in choices]
            reduced = {**reduced, **written[0]} if len(written) == 1 else {**reduced, "anyOf": list[Json](written)}
        elif kinds:
            reduced |= self._typed(kinds[0], found, depth)
        if nullable:
            reduced["nullable"] = True
        return reduced

    def _typed(self, kind: str, found: JsonObject, depth: int) -> JsonObject:
        typed: JsonObject = {"type": kind}
        if found.get("format") in _FORMATS.get(kind, ()):
            typed["format"] = found["format"]
        values = _values(found)
        if values and kind == "string":  # enum is accepted for strings only
            typed["enum"] = [str(value) for value in values if value is not None]
        if kind == "array":
            typed["items"] = self.reduced(found.get("items", {}), depth + 1) or {"type": "string"}
        properties = found.get("properties")
        if kind == "object" and isinstance(properties, dict) and properties:
            typed["properties"] = {name: self.reduced(value, depth + 1) for name, value in properties.items()}
            required = found.get("required")
            if isinstance(required, list) and (names := [name for name in required if isinstance(name, str) and name in properties]):
                typed["required"] = list[Json](names)
        return typed


def _resolved(schema: Json, root: JsonObject, level: int = 0) -> JsonObject:
    """Return the schema with its references and `allOf` merged into it."""
    found: JsonObject = schema if isinstance(schema, dict) else {}
    for _ in range(_DEPTH):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            break
        found = {**_at(root, reference), **{name: value for name, value in found.items() if name != "$ref"}}
    merged: JsonObject = {}
    parts = found.get("allOf")
    for part in parts if isinstance(parts, list) and level < _NESTED else ():
        merged |= _resolved(part, root, level + 1)
    return {**merged, **{name: value for name, value in found.items() if name != "allOf"}}


def _at(root: JsonObject, reference: str) -> JsonObject:
    value: Json = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) and step else value
    return value if isinstance(value, dict) else {}


def _types(schema: JsonObject) -> tuple[list[str], bool]:
    """Return the types, and True if null is one of them. Without a `type` they are guessed from the other keywords."""
    named = schema.get("type")
    kinds = [str(kind) for kind in named] if isinstance(named, list) else [named] if isinstance(named, str) else []
    nullable = "null" in kinds or schema.get("nullable") is True
    kinds = [kind for kind in kinds if kind != "null"]
    if not kinds:
        values = _values(schema)
        guess = {"properties": "object", "items": "array", "pattern": "string", "minimum": "number", "maximum": "number"}
        kinds = [_kind(values[0])] if values else [kind for name, kind in guess.items() if name in schema][:1]
    return kinds, nullable


def _values(schema: JsonObject) -> list[Json]:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else []


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "string"


def _choices(schema: JsonObject) -> list[Json]:
    for name in ("anyOf", "oneOf"):
        choices = schema.get(name)
        if isinstance(choices, list) and choices:
            return choices
    return []


def _is_null(schema: Json, root: JsonObject) -> bool:
    return _resolved(schema, root).get("type") == "null"
