from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from moot.errors import OutputContract, UsageError
from moot.guard import json_schema
from moot.guard.json_schema import check_answer, check_schema, find_problem
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, text_part

pytestmark = pytest.mark.anyio

PERSON: JsonObject = {
    "$defs": {
        "age": {"type": "integer", "minimum": 0},
        "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["name"]},
    },
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "x": {"anyOf": [{"type": "null"}, {"const": 3}]},
        "age": {"$ref": "#/$defs/age"},
        "tree": {"$ref": "#/$defs/node"},
    },
    "additionalProperties": False,
}
EXACTLY_ONE: JsonObject = {
    "$defs": {"cat": {"required": ["meow"]}, "dog": {"required": ["bark"]}},
    "oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
}


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ({"n": 1}, PERSON, ""),
        ({"n": 1.0, "tags": ["a", "b"], "x": None}, PERSON, ""),
        ([], PERSON, "at answer: [] is not of type 'object'"),
        ({}, PERSON, "at answer: 'n' is a required property"),
        ({"n": True}, PERSON, "at answer.n: True is not of type 'integer'"),
        ({"n": 1, "tags": ["c"]}, PERSON, "at answer.tags[0]: 'c' is not one of ['a', 'b']"),
        ({"n": 1, "more": 1}, PERSON, "at answer: Additional properties are not allowed"),
        ({"n": 1, "age": -1}, PERSON, "at answer.age: -1 is less than the minimum of 0"),
        ({"n": 1, "tree": {"name": "a", "children": [{"name": "b"}]}}, PERSON, ""),
        ({"n": 1, "tree": {"name": "a", "children": [{}]}}, PERSON, "at answer.tree.children[0]: 'name' is a required property"),
        ("A1", {"pattern": "^[a-z]+$"}, "at answer: 'A1' does not match '^[a-z]+$'"),
        (1, {"minimum": 2}, "at answer: 1 is less than the minimum of 2"),
        (3, {"maximum": 2}, "at answer: 3 is greater than the maximum of 2"),
        ([], {"minItems": 1}, "at answer: [] should be non-empty"),
        ([1, 1.0], {"uniqueItems": True}, "at answer: [1, 1.0] has non-unique elements"),
        ("no", {"not": {"type": "string"}}, "at answer: 'no' should not be valid under {'type': 'string'}"),
        ({"meow": 1}, EXACTLY_ONE, ""),
        ({"meow": 1, "bark": 1}, EXACTLY_ONE, "at answer: {'meow': 1, 'bark': 1} is valid under each of"),
        ({"x_a": 1}, {"patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}, ""),
        ({"y": 1}, {"patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}, "at answer: 'y' does not match"),
        ({"b": 1}, {"if": {"required": ["a"]}, "then": {"required": ["c"]}}, ""),
        ([1, "a"], {"prefixItems": [{"type": "integer"}, {"type": "integer"}]}, "at answer[1]: 'a' is not of type 'integer'"),
        ({"a": 1}, {"dependentRequired": {"a": ["b"]}}, "at answer: 'b' is a dependency of 'a'"),
    ],
)
@pytest.mark.slow
async def test_a_value_is_validated_against_its_schema(value: Json, schema: JsonObject, problem: str) -> None:
    await check_schema(schema)
    found = await find_problem(value, schema)
    assert found.startswith(problem) if problem else found == ""


async def test_a_draft_4_schema_is_evaluated_by_the_rules_of_draft_4() -> None:
    schema: JsonObject = {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}
    await check_schema(schema)
    assert "3" in await find_problem(3, schema)


async def test_an_answer_that_is_not_json_or_does_not_match_is_an_output_contract_error() -> None:
    assert await check_answer(Message("m", "assistant", (text_part("thinking"), text_part('{"a": 1}'))), {}) == {"a": 1}
    with pytest.raises(OutputContract, match="not valid JSON"):
        await check_answer(Message("m", "assistant", (text_part("Oslo"),)), {})
    with pytest.raises(OutputContract, match=r"does not match the schema: at answer\.a: 1 is not of type 'string'"):
        await check_answer(Message("m", "assistant", (text_part('{"a": 1}'),)), {"properties": {"a": {"type": "string"}}})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integr"}, r"at schema\.type: 'integr' is not"),
        ({"properties": {"a": {"minimum": "1"}}}, r"at schema\.properties\.a\.minimum: '1' is not of type 'number'"),
        ({"properties": {"a": {"pattern": "("}}}, r"at schema\.properties\.a\.pattern: '\(' is not a 'regex'"),
        ({"$schema": 3}, "is not a string"),
        ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, r"schema\.properties\.a: The reference '#/\$defs/gone' can't be resolved"),
        ({"items": {"$ref": "https://example.com/x.json"}}, "The reference 'https://example.com/x.json' can't be resolved. Only"),
        ({"$ref": "#"}, "schema refers back to itself"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}, "refers back to itself"),
        ({"enum": list(range(30_000))}, "more than 20,000 values"),
    ],
)
async def test_an_invalid_schema_is_refused_with_the_place_of_the_fault(schema: JsonObject, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        await check_schema(schema)
    assert raised.value.exit_code == 2
    assert raised.value.fix


async def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: JsonObject = {}
    for _ in range(5_000):
        schema = {"not": schema}
    with pytest.raises(UsageError, match="nested too deeply"):
        await check_schema(schema)


async def test_remote_references_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(UsageError, match="can't be resolved"):
        await find_problem(1, {"$ref": "http://127.0.0.1:9/schema.json"})


def backtracking() -> tuple[Json, JsonObject]:
    return "a" * 60 + "!", {"pattern": "^(a+)+$"}


def backtracking_names() -> tuple[Json, JsonObject]:
    return {"a" * 60 + "!": 1}, {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}


def fan_out() -> tuple[Json, JsonObject]:
    levels = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    definitions: JsonObject = {name: dict(level) for name, level in levels.items()}
    definitions["d40"] = {"type": "integer"}
    return 1, {"$defs": definitions, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize("make", [backtracking, backtracking_names, fan_out])
@pytest.mark.slow
async def test_a_hostile_schema_is_stopped_at_the_time_limit(
    make: Callable[[], tuple[Json, JsonObject]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_schema, "SECONDS", 1.0)
    value, schema = make()
    await check_schema(schema)
    with pytest.raises(UsageError, match="longer than 1 seconds"):
        await find_problem(value, schema)


def test_jsonschema_is_imported_only_for_a_schema() -> None:
    program = "import sys, moot.cli.run, moot.library; print({'jsonschema', 'referencing'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
