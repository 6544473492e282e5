"""The one table of chunk kinds, and the spellings that moot writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.chunk import DATA, KINDS, kind_of, problems

NAMES = st.sampled_from(sorted(KINDS)) | st.from_regex(r"data-[a-z]{1,8}", fullmatch=True)


def whole(name: str) -> JsonObject:
    """A chunk with every field that it must have."""
    kind = kind_of(name)
    assert kind is not None
    return {"type": name} | dict.fromkeys(sorted(kind.required), "x")


OURS = {
    "start": chunk.start("m1", {"agent": "default"}),
    "start without metadata": chunk.start("m1"),
    "finish": chunk.finish("stop", {"usage": {"input": 1}}),
    "finish without metadata": chunk.finish("length"),
    "metadata": chunk.message_metadata({"a": 1}),
    "error": chunk.error("it broke"),
    "abort": chunk.abort("asked to"),
    "abort without reason": chunk.abort(),
    "output": chunk.tool_output("c1", None),
    "tool error": chunk.tool_error("c1", "no such file"),
    "denied": chunk.tool_denied("c1"),
    "input error": chunk.tool_input_error("c1", "shell", "{", "half an input"),
    "data": chunk.data("attempt", {"step": 1}, id="a", transient=True),
    "plain data": chunk.data("attempt", None),
    "start-step": chunk.START_STEP,
    "finish-step": chunk.FINISH_STEP,
}


@pytest.mark.parametrize("name", OURS)
def test_our_chunks_are_valid_for_version_six_clients(name: str) -> None:
    assert problems(OURS[name], 6) == []


def test_chunk_functions_omit_absent_fields() -> None:
    assert chunk.start("m1") == {"type": "start", "messageId": "m1"}
    assert chunk.finish("stop") == {"type": "finish", "finishReason": "stop"}
    assert chunk.abort() == {"type": "abort"}
    assert chunk.data("x", 1) == {"type": "data-x", "data": 1}
    assert chunk.data("x", 1, id="a", transient=True) == {"type": "data-x", "data": 1, "id": "a", "transient": True}


@given(NAMES)
def test_a_kind_is_accepted_from_its_first_version(name: str) -> None:
    kind = kind_of(name)
    assert kind is not None
    for version in (5, 6, 7):
        told = problems(whole(name), version)
        assert told == ([] if version >= kind.since else [f"{name}: needs version {kind.since}"])


@given(NAMES, st.data())
def test_every_missing_field_is_reported(name: str, data: st.DataObject) -> None:
    kind = kind_of(name)
    assert kind is not None
    left = data.draw(st.sets(st.sampled_from(sorted(kind.required)))) if kind.required else set()
    given_up = {field: value for field, value in whole(name).items() if field not in left}
    assert problems(given_up, 7) == [f"{name}: field {field!r} missing" for field in sorted(left)]


@given(NAMES, st.text(min_size=1).filter(lambda field: field != "type"))
def test_an_unknown_field_is_reported(name: str, field: str) -> None:
    kind = kind_of(name)
    assert kind is not None
    known = kind.required | kind.optional | kind.later
    told = problems(whole(name) | {field: "x"}, 7)
    assert told == ([] if field in known else [f"{name}: field {field!r} not known"])


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, kind in KINDS.items() for field in sorted(kind.later)])
def test_a_later_field_is_for_version_seven_only(name: str, field: str) -> None:
    assert problems(whole(name) | {field: "x"}, 7) == []
    assert f"{name}: field {field!r} not known" in problems(whole(name) | {field: "x"}, 6)


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, kind in KINDS.items() for field in sorted(kind.optional)])
def test_an_optional_field_is_left_out_and_not_null(name: str, field: str) -> None:
    assert problems(whole(name) | {field: None}, 7) == [f"{name}: field {field!r} is null; leave it out"]


@pytest.mark.parametrize("value", [{}, {"type": "brand-new"}, {"type": 7}, {"type": None}, {"type": "data"}])
def test_an_unknown_kind_is_reported(value: JsonObject) -> None:
    assert problems(value, 7) == [f"unknown type {value.get('type')!r}"]


def test_data_chunks_of_any_name_have_one_kind() -> None:
    assert kind_of("data-anything") is DATA
    assert kind_of("anything") is None
