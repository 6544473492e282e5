"""Evaluation of JSON Schemas with the jsonschema package. Also a program that reads a request on stdin and writes the result to stdout."""

from __future__ import annotations

import json
import resource as limits
import sys
from collections.abc import Iterator
from typing import Any, cast

import jsonschema.exceptions
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from moot.types.canonical import Json, JsonObject

_LENGTH = 300
"""Maximum length of a reason in characters. The library quotes the whole value in it."""
_MEMORY = 1 << 30
"""Maximum number of bytes that the child process may allocate."""
_REGEX = FormatChecker(formats=("regex",))
_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref")
"""Keywords whose subschemas apply to the same value. A cycle of these never ends."""
_NO_REMOTE = cast("Any", Registry)()
_EXCEPTIONS: Any = jsonschema.exceptions
"""Typed as Any, because the library's `best_match` is not fully typed."""


def schema_fault(schema: JsonObject) -> str:
    """Return what is wrong with the schema and where; empty if it is valid."""
    if not isinstance(schema.get("$schema", ""), str):
        return "schema.$schema is not a string."
    try:
        validator = cast("Any", validator_for(schema, default=Draft202012Validator))
        error = _EXCEPTIONS.best_match(validator(validator.META_SCHEMA, format_checker=_REGEX).iter_errors(schema))
        return _message(error, "schema") if error is not None else _reference_fault(schema)
    except RecursionError:
        return "It is nested too deeply."


def evaluate(value: Json, schema: JsonObject, name: str) -> JsonObject:
    """Return `{"problem": …}`, empty if the value matches, or `{"fault": …}` if the schema can't be evaluated."""
    try:
        validator = cast("Any", validator_for(schema, default=Draft202012Validator))
        error = _EXCEPTIONS.best_match(validator(schema, registry=_NO_REMOTE).iter_errors(value))
    except RecursionError:
        return {"fault": "It refers to itself without end."}
    except Unresolvable as fault:
        return {"fault": f"Its reference {fault.ref!r} can't be resolved."}
    except Exception as fault:  # noqa: BLE001  an invalid schema of a client's tool can make any keyword fail
        return {"fault": str(fault)[:_LENGTH] or type(fault).__name__}
    return {"problem": "" if error is None else _message(error, name)}


def _message(error: ValidationError, name: str) -> str:
    reason = error.message
    if len(reason) > _LENGTH:
        reason = f"{reason[: _LENGTH // 2]} … {reason[-_LENGTH // 2 :]}"
    return f"at {name}{error.json_path[1:]}: {reason}."


def _reference_fault(schema: JsonObject) -> str:
    """Return an error for a reference that can't be resolved, or that leads back to itself for the same value; empty if there is none."""
    root: Any = Resource(schema, specification_with(str(schema.get("$schema", "")), default=DRAFT202012))
    resolver = _NO_REMOTE.with_resource(root.id() or "", root).resolver(root.id() or "")
    targets: dict[int, Json] = {}
    for path, subschema, inner in _references(root, resolver):
        try:
            targets[id(subschema)] = inner.lookup(subschema["$ref"]).contents
        except Unresolvable:
            return f"{path}: The reference {subschema['$ref']!r} can't be resolved. Only references within the schema are supported."
    finished: set[int] = set()
    return next((f"{path} refers back to itself." for path, found in _walk(schema, "schema") if _loops(found, targets, (), finished)), "")


def _references(root: Any, resolver: Any) -> Iterator[tuple[str, JsonObject, Any]]:
    places = {id(found): path for path, found in _walk(root.contents, "schema")}
    stack = [(root, resolver)]
    while stack:
        found, inner = stack.pop()
        contents: Json = found.contents
        if isinstance(contents, dict):
            if isinstance(contents.get("$ref"), str):
                yield places.get(id(contents), "schema"), contents, inner
            stack += [(sub, inner.in_subresource(sub)) for sub in found.subresources()]


def _walk(value: Json, path: str) -> Iterator[tuple[str, JsonObject]]:
    if isinstance(value, dict):
        yield path, value
        for name, item in value.items():
            if name not in _DATA:
                yield from _walk(item, f"{path}.{name}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _walk(item, f"{path}[{at}]")


def _loops(schema: Json, targets: dict[int, Json], path: tuple[int, ...], finished: set[int]) -> bool:
    if not isinstance(schema, dict) or id(schema) in finished:
        return False
    if id(schema) in path:
        return True
    applied: list[Json] = [targets.get(id(schema))]
    for keyword in _IN_PLACE:
        inner = schema.get(keyword)
        applied += inner if isinstance(inner, list) else [inner]
    if any(_loops(inner, targets, (*path, id(schema)), finished) for inner in applied):
        return True
    finished.add(id(schema))
    return False


def _main() -> None:
    limits.setrlimit(limits.RLIMIT_AS, (_MEMORY, _MEMORY))
    request = json.load(sys.stdin.buffer)
    json.dump(evaluate(request["value"], request["schema"], request["name"]), sys.stdout)


if __name__ == "__main__":
    _main()
