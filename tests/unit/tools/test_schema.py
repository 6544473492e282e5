from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from moot.plugins import TOOLS
from moot.tools.basics import BaseTool
from moot.tools.builtin.delegate import Delegate
from moot.tools.schema import definition, definition_digest, parse, subject_of
from moot.types.tool import ToolOutput, View


class Inner(BaseModel):
    """Not for models."""

    old: str
    new: str = ""


class Everything(BaseModel):
    """Not for models."""

    path: str = Field(min_length=1, description="Where")
    title: str = "x"
    number: int | None = None
    inner: list[Inner] = []
    mode: Literal["a", "b"] = "a"


class Tree(BaseModel):
    name: str
    below: list["Tree"] = []


class Sample(BaseTool):
    name = "sample"
    description = "A sample."
    arguments: type[BaseModel] = Everything
    effects = frozenset({"read"})

    async def run(self, arguments: Any, context: Any) -> ToolOutput:
        return ToolOutput("")

    def doing(self, arguments: Any) -> View:
        return View("")

    def done(self, arguments: Any, output: ToolOutput) -> View:
        return View("")


class Recursive(Sample):
    arguments: type[BaseModel] = Tree


def test_the_schema_is_small_and_complete():
    assert definition(Sample()).schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "Where"},
            "title": {"type": "string", "default": "x"},
            "number": {"type": "integer"},
            "inner": {
                "type": "array",
                "default": [],
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}, "new": {"type": "string", "default": ""}},
                    "required": ["old"],
                },
            },
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        },
        "required": ["path"],
    }


def test_a_recursive_schema_keeps_its_reference():
    schema = definition(Recursive()).schema
    assert "$ref" in str(schema)
    assert "Tree" in schema["$defs"]


def test_good_arguments_become_the_model():
    assert parse(Sample(), {"path": "x", "inner": [{"old": "a"}]}) == Everything(path="x", inner=[Inner(old="a")])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "must be a JSON object, not null"),
        ("x", "must be a JSON object, not a string"),
        ([], "must be a JSON object, not a list"),
        ({}, "path: Field required"),
        ({"path": 5}, "path: Input should be a valid string, got 5"),
        ({"path": "x", "number": "many"}, "number: Input should be a valid integer"),
        ({"path": "x", "inner": [{"new": "a"}]}, "inner.0.old: Field required"),
        ({"path": "x", "mode": "c"}, "mode: Input should be 'a' or 'b', got 'c'"),
        ({"path": "x", "nunber": 1}, "Unknown argument 'nunber'. Did you mean 'number'?"),
        ({"path": "\ud800"}, "path: "),
    ],
)
def test_invalid_arguments_are_reported_with_the_expected_ones(value: Any, words: str):
    said = parse(Sample(), value)
    assert isinstance(said, str)
    assert words in said
    assert (
        "sample: path (string, required), title (string), number (integer), inner (list of {old (string, required), new (string)})" in said
    )


def test_a_list_written_as_json_text_is_understood():
    assert parse(Sample(), {"path": "x", "inner": '[{"old": "a"}]'}) == Everything(path="x", inner=[Inner(old="a")])
    assert isinstance(parse(Sample(), {"path": "x", "inner": '["a"]'}), str)
    assert isinstance(parse(Sample(), {"path": "x", "inner": '"[]"'}), str)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(PLAIN, lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=9)


@given(JSON | st.dictionaries(st.sampled_from(["path", "number", "inner", "mode", "title"]), JSON))
def test_arbitrary_arguments_never_raise(value: Any):
    assert isinstance(parse(Sample(), value), str | Everything)


def test_the_digest_changes_with_the_definition():
    class Other(Sample):
        description = "Another sample."

    assert definition_digest(Sample()) == definition_digest(Sample())
    assert len(definition_digest(Sample())) == 32
    assert len({definition_digest(Sample()), definition_digest(Other()), definition_digest(Recursive())}) == 3


def test_names_of_tools_are_known():
    assert "read_file" in TOOLS


def test_permission_rules_see_agents_in_a_list_written_as_json_text():
    call: Any = {"agent": "explorer", "prompt": "a", "more": '[{"agent": "reviewer", "prompt": "b"}]'}
    parsed: Any = parse(Delegate(), call)
    started = [parsed.agent, *(one.agent for one in parsed.more)]
    assert subject_of(Delegate(), call) == ", ".join(started) == "explorer, reviewer"
    assert subject_of(Delegate(), {**call, "more": "no list"}) == "explorer"
