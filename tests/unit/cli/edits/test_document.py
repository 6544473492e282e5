from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.commands.chat.document import Block, Entry, Fixed, Text, parse, parse_blocks, render, render_blocks
from moot.errors import UsageError

_TRICKY = ["\n", "<!-- moot", "\\", " -->", "<!-- moot user -->", "<!-- moot 1 user a -->", "<!-- moot text -->", "<!-- moot = x -->"]
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.sampled_from([*_TRICKY, "<!-- moot: n", "\r", " ", "a"]), max_size=8).map("".join),
)
blocks = st.one_of(texts.map(Text), st.text("ab <>-=", min_size=1).map(Fixed))
roles = st.sampled_from(["user", "assistant", "system"])
many = st.lists(blocks, max_size=4).map(tuple)
entries = st.one_of(st.builds(Entry, roles, many), st.builds(Entry, roles, many, st.integers(1, 999), st.sampled_from(["", "0193-a"])))


@given(st.lists(entries, max_size=4).map(tuple))
def test_a_conversation_survives_a_round_trip(conversation: tuple[Entry, ...]) -> None:
    assert parse(render(conversation)) == conversation


@given(many)
def test_one_message_survives_a_round_trip(message: tuple[Block, ...]) -> None:
    assert parse_blocks(render_blocks(message), 1) == message


def test_the_rendered_text_is_readable() -> None:
    text = render([Entry("user", (Text("hello\nyou"),), 1, "0193"), Entry("assistant", (Fixed("2.0 tool x"), Text("yes")), 2, "0194")])
    assert text.partition("\n\n")[2] == (
        "<!-- moot 1 user 0193 -->\nhello\nyou\n\n<!-- moot 2 assistant 0194 -->\n<!-- moot = 2.0 tool x -->\n\nyes\n\n"
    )


def test_an_added_message_needs_no_empty_lines() -> None:
    assert parse("<!-- moot user -->\nnew") == (Entry("user", (Text("new"),)),)
    assert parse("\n<!-- moot user -->\nnew\n<!-- moot assistant -->\n\n") == (Entry("user", (Text("new"),)), Entry("assistant", ()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lost\n<!-- moot user -->\nx", "Line 1 is outside any message: 'lost'"),
        ("<!-- moot user -->\nx\n<!-- moot usr -->\ny", "Line 3 is not a valid marker"),
        ("<!-- moot user -->\r\nx\r\n", "Line 1 is outside any message"),
        ("just some words", "Line 1 is outside any message"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert words in raised.value.message
