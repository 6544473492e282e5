"""Model ids, parts and failures: the small values that many rooms read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.types.exchange import Ending, Failure
from moot.types.message import is_tool, text_of, text_part, tool_name
from moot.types.model import ModelId
from moot.types.usage import LARGEST, Usage


@pytest.mark.parametrize(
    ("text", "model", "provider"),
    [
        ("big@mine", "big", "mine"),
        ("big", "big", ""),
        ("a@b@c", "a@b", "c"),
        ("vendor/big:free@router", "vendor/big:free", "router"),
        ("@mine", "", "mine"),
        ("big@", "big", ""),
    ],
)
def test_a_model_id_is_split_at_the_last_at(text: str, model: str, provider: str) -> None:
    assert ModelId.parse(text) == ModelId(model, provider)


@given(st.text(min_size=1), st.text(min_size=1).filter(lambda name: "@" not in name))
def test_a_model_id_survives_a_round_trip(model: str, provider: str) -> None:
    assert ModelId.parse(str(ModelId(model, provider))) == ModelId(model, provider)


def test_a_tool_part_knows_its_tool() -> None:
    assert is_tool({"type": "tool-shell"})
    assert is_tool({"type": "dynamic-tool", "toolName": "lamp"})
    assert not is_tool({"type": "text"})
    assert not is_tool({})
    assert tool_name({"type": "tool-read_file"}) == "read_file"
    assert tool_name({"type": "dynamic-tool", "toolName": "lamp"}) == "lamp"


def test_text_is_the_readable_content() -> None:
    parts = [text_part("one "), {"type": "reasoning", "text": "hidden"}, text_part("two"), {"type": "text", "text": 3}]
    assert text_of(parts) == "one two"


FAILURES = st.builds(Failure, st.text(), st.text(), st.booleans(), st.none() | st.floats(min_value=0, max_value=1e6))
ENDINGS = st.builds(
    Ending,
    st.sampled_from(["stop", "length", "error"]),
    st.none() | st.text(),
    st.builds(Usage, st.none() | st.integers(0, LARGEST - 1)),
    st.none() | st.integers(min_value=0),
    st.none() | FAILURES,
    st.dictionaries(st.text(), st.text()),
)


@given(ENDINGS)
def test_an_ending_survives_a_round_trip(ending: Ending) -> None:
    assert Ending.from_json(ending.to_json()) == ending


JUNK = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())
FIELDS = st.sampled_from(["finish_reason", "raw_reason", "usage", "cost", "error", "metadata", "retry_after", "message"])


@given(st.dictionaries(FIELDS, JUNK))
def test_a_damaged_journal_entry_is_still_read(value: dict[str, object]) -> None:
    assert isinstance(Ending.from_json(value).usage, Usage)  # pyright: ignore[reportArgumentType]
    assert isinstance(Failure.from_json(value).message, str)  # pyright: ignore[reportArgumentType]
