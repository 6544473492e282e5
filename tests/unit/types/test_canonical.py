"""JSON as moot writes and reads it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.types.canonical import MAX_DEPTH, dumps, loads, loads_exact, loads_object

WHOLE = st.integers(min_value=-(2**63), max_value=2**64 - 1)
TEXT = st.text()
SURROGATES = st.text(st.characters())  # lone surrogates included
LEAF = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | TEXT


def values(leaf: st.SearchStrategy[object], key: st.SearchStrategy[str] = TEXT) -> st.SearchStrategy[object]:
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(key, inner, max_size=4), max_leaves=20)


@given(values(LEAF))
def test_json_survives_a_round_trip(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads_exact(dumps(value)) == value


@given(values(LEAF | st.integers() | SURROGATES | st.floats(), SURROGATES))
def test_output_is_accepted_by_json_parsers(value: object) -> None:
    written = dumps(value)
    assert dumps(json.loads(written)) == written
    written.decode("utf-8")


@given(st.dictionaries(TEXT, WHOLE))
def test_keys_keep_their_order(value: dict[str, int]) -> None:
    assert list(loads_object(dumps(value))) == list(value)


@given(st.integers())
def test_integers_keep_every_digit(value: int) -> None:
    assert dumps(value) == str(value).encode()
    assert loads_exact(str(value)) == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, b"null"),
        ([math.inf, 2**70], b"[null,1180591620717411303424]"),
        ({"a": "\ud800b"}, '{"a":"\ufffdb"}'.encode()),
        ({"\udfff": 2**70}, '{"\ufffd":1180591620717411303424}'.encode()),
        ("\ud83d\ude00", '"\ufffd\ufffd"'.encode()),
        ({"b": 1, "a": 2}, b'{"b":1,"a":2}'),
        ("é\n", '"é\\n"'.encode()),
    ],
)
def test_values_outside_json_are_replaced(value: object, written: bytes) -> None:
    assert dumps(value) == written


def test_too_deep_nesting_is_refused() -> None:
    value: object = 0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError):
        dumps(value)
    with pytest.raises(ValueError):
        dumps([value, 2**70])


def test_values_that_are_not_json_are_refused() -> None:
    with pytest.raises(ValueError):
        dumps({"a": object()})


@pytest.mark.parametrize("text", ["[1,]", "", "{", '"\x00"', "tru", "1 2", b"\xff"])
def test_invalid_json_is_refused_by_every_parser(text: str | bytes) -> None:
    for read in (loads, loads_exact, loads_object):
        with pytest.raises(ValueError):
            read(text)


@pytest.mark.parametrize("text", ["[]", "1", "null", '"a"'])
def test_loads_object_accepts_only_objects(text: str) -> None:
    with pytest.raises(ValueError, match="expected a JSON object"):
        loads_object(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"path": "a", "path": "b"}', "duplicate key 'path'"),
        ('[{"x": {"y": 1, "y": 1}}]', "duplicate key 'y'"),
        ('{"n": NaN}', "NaN is not valid JSON"),
        ("[Infinity]", "Infinity is not valid JSON"),
        ("-Infinity", "-Infinity is not valid JSON"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "nested deeper"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    ],
)
def test_ambiguous_arguments_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        loads_exact(text)


def test_arguments_may_be_nested_as_deep_as_we_store() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert dumps(loads_exact(text)) == text.encode()
