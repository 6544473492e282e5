from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.formats.kit.fields import iso_of, milliseconds, money
from moot.formats.kit.json import MAX_ELEMENT, array_items, json_object, json_value, members, members_at, parse_json, parse_prefix

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 40), 1 << 40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
quick = settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)


def cut(data: bytes, sizes: random.Random) -> Iterator[bytes]:
    begin = 0
    while begin < len(data):
        size = sizes.randint(1, 9)
        yield data[begin : begin + size]
        begin += size


@quick
@given(values=st.lists(VALUES, max_size=6), indent=st.sampled_from([None, 1]), ascii=st.booleans(), sizes=st.randoms(use_true_random=False))
def test_an_array_is_read_element_by_element_from_any_chunks(
    values: list[Any], indent: int | None, ascii: bool, sizes: random.Random
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=ascii).encode()
    found = list(array_items(cut(data, sizes)))
    assert [one.value for one in found] == values
    assert not any(one.problem for one in found)
    assert all(one.raw in data and json.loads(one.raw) == one.value for one in found)


@quick
@given(values=st.lists(VALUES, min_size=1, max_size=5), sizes=st.randoms(use_true_random=False), data=st.data())
def test_a_truncated_array_gives_its_complete_elements(values: list[Any], sizes: random.Random, data: st.DataObject) -> None:
    written = json.dumps(values).encode()
    found = list(array_items(cut(written[: data.draw(st.integers(0, len(written)))], sizes)))
    whole = [one.value for one in found if not one.problem]
    assert len(whole) <= len(values)
    assert whole[:-1] == values[: len(whole)][:-1]  # the last may be a truncated number
    assert all(one.problem for one in found[len(whole) :])


@quick
@given(value=st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_the_bytes_of_a_member_are_its_value(value: dict[str, Any]) -> None:
    data = json.dumps(value).encode()
    assert {one.name: json.loads(data[one.begin : one.end]) for one in members(data)} == value


@quick
@given(value=st.dictionaries(st.text(max_size=5), st.dictionaries(st.text(max_size=5), VALUES, max_size=3) | VALUES, max_size=4))
def test_nested_members_are_found_in_one_pass(value: dict[str, Any]) -> None:
    data = json.dumps(value).encode()
    found = {way: json.loads(data[one.begin : one.end]) for way, one in members_at(data, ("*", "*"))}
    inner = {(name, key): one for name, within in value.items() if isinstance(within, dict) for key, one in within.items()}
    assert found == {(name,): one for name, one in value.items()} | inner


def test_deeply_nested_brackets_are_scanned_quickly() -> None:
    deep = b"[" * 50_000
    assert [piece.problem for piece in array_items([b"[" + deep])] == ["element 1 is truncated"]
    assert [piece.raw for piece in array_items([b"[" + deep + b"]" * 50_000 + b"]"])] == [deep + b"]" * 50_000]
    assert [piece.problem for piece in array_items([b'[{"a": "' + b'\\"{' * 50_000])] == ["element 1 is truncated"]


@quick
@given(value=st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=5), VALUES, max_size=4), data=st.data())
def test_the_beginning_of_a_document_is_read_wherever_it_is_truncated(value: Any, data: st.DataObject) -> None:
    written = json.dumps(value).encode()
    assert parse_prefix(written) == value
    found = parse_prefix(written[: data.draw(st.integers(1, len(written)))])
    assert found is None or type(found) is type(value)


def test_an_oversized_element_is_reported_and_never_loaded() -> None:
    def chunks() -> Iterator[bytes]:
        yield b'[{"id": 1}, {"text": "'
        for _ in range(MAX_ELEMENT // (1 << 20) + 3):
            yield b"x" * (1 << 20)
        yield b'"}, {"id": 2}]'

    first, second, third = array_items(chunks())
    assert (first.value, third.value) == ({"id": 1}, {"id": 2})
    assert second.raw == b""
    assert "larger than 64 MiB" in second.problem


def test_half_a_surrogate_pair_costs_one_character() -> None:
    assert parse_json(b'{"a": "cut \\ud83d"}') == {"a": "cut \ufffd"}


def test_time_units_are_distinguished_by_size() -> None:
    assert {milliseconds(time) for time in (1795294171.5, 1795294171500, 1795294171500123, "2026-11-21T20:49:31.5Z")} == {1795294171500}
    assert [milliseconds(time) for time in (None, True, -5, "yesterday", float("nan"), 1e300)][:5] == [0] * 5


def test_a_time_in_the_usual_notation_is_the_same_as_in_any_other() -> None:
    for usual in ("2026-11-21T20:49:31.500Z", "1970-01-01T00:00:00.001Z", "2024-02-29T23:59:59.999Z"):
        assert milliseconds(usual) == milliseconds(f" {usual.replace('Z', '+00:00')}") > 0
    for invalid in ("2026-02-30T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "1969-12-31T23:59:59.999Z"):
        assert milliseconds(invalid) == 0


@quick
@given(ms=st.integers(1 << 37, 253_402_300_799_000 >> 2), unit=st.sampled_from([1, 1000, 1_000_000]))
def test_a_time_is_the_same_in_every_unit_and_notation(ms: int, unit: int) -> None:
    assert milliseconds(iso_of(ms)) == ms
    if 100_000_000_000 <= ms < 100_000_000_000_000:
        assert milliseconds(ms * unit) == ms
        assert milliseconds(ms / 1000) == ms


def test_json_in_texts_is_parsed_and_other_text_is_kept() -> None:
    assert [json_value(value) for value in ('{"a": 1}', "7", "", "not json", None, 7)] == [{"a": 1}, 7, "", "not json", None, 7]
    assert [json_object(value) for value in ('{"a": 1}', "[1]", "", "{", None)] == [{"a": 1}, {}, {}, {}, {}]


def test_money_is_whole_nano_dollars_or_unknown() -> None:
    assert [money(value) for value in (0.0011, 0, None, -1, "5", True, float("inf"))] == [1_100_000, 0, None, None, None, None, None]
