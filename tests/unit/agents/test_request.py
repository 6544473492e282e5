"""The bytes of a request and the pieces named in its manifest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moot.agents.request import split
from moot.types.canonical import dumps, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(["model", "messages", "stream", "tools", "x"]), values, max_size=5)


@given(bodies)
def test_pieces_joined_are_the_canonical_bytes(body: dict[str, object]) -> None:
    assert b"".join(split(body)) == dumps(body)  # type: ignore[arg-type]


def test_a_longer_history_shares_all_pieces_but_the_ends() -> None:
    short = {"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": []}
    longer = {**short, "messages": [*short["messages"], {"role": "user", "content": "c"}]}  # type: ignore[misc]
    first, second = split(short), split(longer)  # type: ignore[arg-type]
    assert second[0] == first[0] and second[1] == first[1] and second[-1] == first[-1]
    assert loads(b"".join(second)) == longer
