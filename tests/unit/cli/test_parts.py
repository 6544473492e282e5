from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.console.format import age
from moot.cli.console.lines import screen_json
from moot.cli.follow import exit_code_of
from moot.cli.options import seconds
from moot.errors import UsageError


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_json_for_a_terminal_has_no_control_characters(value: Any) -> None:
    plain = json.dumps(value, ensure_ascii=False)
    if any("\ud800" <= character <= "\udfff" for character in plain):
        return
    shown = screen_json(plain)
    assert json.loads(shown) == value
    assert all(character.isprintable() for character in shown)


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
