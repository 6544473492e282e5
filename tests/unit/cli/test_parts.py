from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.following import exit_code_of
from moot.cli.lines import screen_json
from moot.cli.options import seconds
from moot.cli.times import age
from moot.convert.contract import problems
from moot.errors import UsageError
from moot.types.canonical import Json


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_json_for_a_terminal_has_no_control_characters(value: Any) -> None:
    plain = json.dumps(value, ensure_ascii=False)
    if any("\ud800" <= character <= "\udfff" for character in plain):
        return
    shown = screen_json(plain)
    assert json.loads(shown) == value
    assert all(character.isprintable() for character in shown)


SCHEMA: Json = {
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "x": {"anyOf": [{"type": "null"}, {"const": 3}]},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"n": 1}, None),
        ({"n": 1.0, "tags": ["a", "b"], "x": None}, None),
        ({"n": 1, "x": 3}, None),
        ([], "answer is list, expected object"),
        ({}, "answer.n is missing"),
        ({"n": True}, "answer.n is bool, expected integer"),
        ({"n": 1.5}, "answer.n is float, expected integer"),
        ({"n": 1, "tags": ["c"]}, "answer.tags[0] is 'c'"),
        ({"n": 1, "x": 4}, "answer.x fits 0 of the schemas of anyOf"),
        ({"n": 1, "more": 1}, "answer.more may not be there"),
    ],
)
def test_an_answer_is_checked_against_its_schema(value: Json, problem: str | None) -> None:
    found = next(problems(value, SCHEMA), None)
    assert (found is None) if problem is None else (found or "").startswith(problem)


@pytest.mark.parametrize(("text", "expected"), [("90", 90.0), ("90s", 90.0), ("5m", 300.0), ("1h", 3600.0), ("0.5", 0.5)])
def test_durations_are_converted_to_seconds(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "soon", "-1", "1d2", "1 s s"])
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="90s"):
        seconds(text)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("usage", 2),
        ("config", 2),
        ("output_contract", 4),
        ("limit", 6),
        ("rate_limit", 5),
        ("auth", 5),
        ("anything new", 5),
        ("timeout", 5),
        ("deadline", 124),
    ],
)
def test_the_failure_kind_determines_the_exit_code(kind: str, code: int) -> None:
    assert exit_code_of(kind) == code


@pytest.mark.parametrize(
    ("ago", "words"), [(5, "5 s"), (65, "1 min"), (7200, "2 h"), (3 * 86400, "3 d"), (70 * 86400, "2 mo"), (800 * 86400, "2 y")]
)
def test_an_age_has_one_unit(ago: int, words: str) -> None:
    assert age(1_000_000_000_000 - ago * 1000, 1_000_000_000) == words
