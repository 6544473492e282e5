from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.revising.document import Block, Entry, Fixed, Text, parse, parse_blocks, render, render_blocks
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
def test_a_conversation_comes_back_to_the_letter(conversation: tuple[Entry, ...]) -> None:
    assert parse(render(conversation)) == conversation


@given(many)
def test_one_message_comes_back_to_the_letter(message: tuple[Block, ...]) -> None:
    assert parse_blocks(render_blocks(message), 1) == message


def test_it_reads_well() -> None:
    text = render([Entry("user", (Text("hello\nyou"),), 1, "0193"), Entry("assistant", (Fixed("2.0 tool x"), Text("yes")), 2, "0194")])
    assert text.partition("\n\n")[2] == (
        "<!-- moot 1 user 0193 -->\nhello\nyou\n\n<!-- moot 2 assistant 0194 -->\n<!-- moot = 2.0 tool x -->\n\nyes\n\n"
    )


def test_a_message_may_be_added_without_care_for_empty_lines() -> None:
    assert parse("<!-- moot user -->\nnew") == (Entry("user", (Text("new"),)),)
    assert parse("\n<!-- moot user -->\nnew\n<!-- moot assistant -->\n\n") == (Entry("user", (Text("new"),)), Entry("assistant", ()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lost\n<!-- moot user -->\nx", "line 1 belongs to no message: 'lost'"),
        ("<!-- moot user -->\nx\n<!-- moot usr -->\ny", "line 3 looks like a mark and is none"),
        ("<!-- moot user -->\r\nx\r\n", "line 1 belongs to no message"),
        ("just some words", "line 1 belongs to no message"),
    ],
)
def test_what_is_neither_text_nor_mark_is_named_by_its_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert words in raised.value.message
