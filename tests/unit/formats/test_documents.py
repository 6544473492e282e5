from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.formats.kit.json import PartialDocument, parse_json, partial_document

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 50), 1 << 50) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=5)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.sampled_from([None, 2]), st.booleans())
def test_members_are_found_with_their_own_bytes(value: dict[str, object], indent: int | None, ascii: bool) -> None:
    found = PartialDocument(json.dumps(value, indent=indent, ensure_ascii=ascii).encode("utf-8", "surrogatepass"))
    assert found.whole and found.names() == list(value)
    for name, member in value.items():
        assert json.loads(found.raw(name)) == member


@given(OBJECTS, st.sampled_from([None, 1]))
def test_elements_and_their_separators_add_up_to_the_array(objects: list[dict[str, object]], indent: int | None) -> None:
    data = json.dumps({"before": [1, {"a": "]"}], "list": objects, "after": "[{"}, indent=indent).encode()
    found = list(PartialDocument(data).elements("list"))
    assert [element.value for element in found] == objects
    assert all(element.raw in data for element in found)
    assert b"".join(element.lead + element.raw for element in found) in data


@given(OBJECTS, st.data())
def test_a_truncated_document_keeps_its_complete_values(objects: list[dict[str, object]], data: st.DataObject) -> None:
    whole = json.dumps({"list": objects}).encode()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    found = PartialDocument(cut)
    values = [element.value for element in found.elements("list") if not element.problem]
    assert not found.whole
    assert values == objects[: len(values)]


def test_a_broken_element_does_not_affect_others() -> None:
    found = list(PartialDocument(b'{"list": [{"a": 1}, {"b": nonsense}, 7, {"c": 3}]}').elements("list"))
    assert [element.value for element in found] == [{"a": 1}, None, None, {"c": 3}]
    assert [bool(element.problem) for element in found] == [False, True, True, False]


def test_half_surrogates_are_read_as_javascript_writes_them() -> None:
    assert parse_json(b'{"a": "x\\ud83d"}') == {"a": "x\ufffd"}


def test_a_deeply_nested_value_is_reported_without_a_crash() -> None:
    deep = b"[" * 200_000
    [element] = PartialDocument(b'{"list": [{"a": ' + deep + b"}]}").elements("list")
    assert element.problem
    with pytest.raises(ValueError):
        parse_json(deep)


def test_the_beginning_of_a_file_shows_the_content_of_a_truncated_member() -> None:
    inner = partial_document(b'{"metadata": {"uuid": "x", "contextItems": [{"content": "' + b"long " * 100, "metadata")
    assert inner.text("uuid") == "x" and not inner.whole


def test_a_broken_member_does_not_affect_others() -> None:
    found = PartialDocument(b'{"a": 1, broken thing, "b": [2], nonsense: ], "c": 3}')
    assert {name: found.value(name) for name in found.names()} == {"a": 1, "b": [2], "c": 3} and found.whole
