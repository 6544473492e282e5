"""Usage: None is unknown, which is not 0."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from moot.types.canonical import Json
from moot.types.usage import LARGEST, Usage

COUNT = st.none() | st.integers(min_value=0, max_value=10**9)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT)
JSON = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)


@given(USAGE, USAGE, USAGE)
def test_sums_do_not_depend_on_their_order(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a


@given(USAGE)
def test_json_has_only_known_fields_and_survives_a_round_trip(usage: Usage) -> None:
    assert None not in usage.to_json().values()
    assert Usage.from_json(usage.to_json()) == usage


@example({"input": LARGEST, "output": LARGEST - 1, "reasoning": -LARGEST})
@given(st.dictionaries(st.sampled_from(["input", "output", "reasoning", "audio", ""]), JSON))
def test_any_json_is_accepted_and_invalid_counts_are_unknown(value: dict[str, Json]) -> None:
    usage = Usage.from_json(value)
    for name in ("input", "output", "reasoning"):
        said = value.get(name)
        assert getattr(usage, name) == (said if isinstance(said, int) and not isinstance(said, bool) and abs(said) < LARGEST else None)


def test_unknown_and_zero_differ() -> None:
    assert Usage(input=None) + Usage(input=None) == Usage(input=None)
    assert Usage(input=0) + Usage(input=None) == Usage(input=0)
    assert Usage(input=0) != Usage()
