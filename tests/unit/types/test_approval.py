"""An approval is bound to exactly what it was given for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moot.types.approval import bind

About = tuple[str, str, str, bytes, bytes]
ABOUT = st.tuples(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.binary(max_size=8), st.binary(max_size=8))


@given(ABOUT, ABOUT)
def test_only_identical_content_has_the_same_digest(one: About, other: About) -> None:
    assert (bind(*one) == bind(*other)) == (one == other)
    assert len(bind(*one)) == 32


@given(ABOUT, st.integers(min_value=0, max_value=8))
def test_field_borders_are_part_of_the_hash(about: About, at: int) -> None:
    run, directory, tool, definition, arguments = about
    joined = definition + arguments
    same = len(joined[:at]) == len(definition)
    assert (bind(run, directory, tool, joined[:at], joined[at:]) == bind(*about)) == same


def test_a_directory_that_is_not_unicode_can_be_bound() -> None:
    assert bind("r", "/home/\udcff", "shell", b"", b"") != bind("r", "/home/\ufffd", "shell", b"", b"")
