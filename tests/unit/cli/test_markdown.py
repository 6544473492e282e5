from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.markdown import Markdown

STYLE = re.compile("\x1b\\[[0-9]+m")
TEXT = st.text(st.sampled_from("ab #*`\n-_é"), max_size=60)


def whole(text: str) -> str:
    markdown = Markdown(colour=True)
    return markdown.feed(text) + markdown.end()


@given(TEXT, st.lists(st.integers(0, 60), max_size=8))
def test_any_cutting_comes_out_the_same(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    markdown = Markdown(colour=True)
    pieces = [markdown.feed(text[start:end]) for start, end in pairwise(edges)]
    assert "".join(pieces) + markdown.end() == whole(text)


@given(TEXT)
def test_nothing_is_lost_but_marks_and_every_style_is_closed(text: str) -> None:
    shown = whole(text)
    bare = STYLE.sub("", shown)
    assert bare.replace("*", "").replace("`", "") == text.replace("*", "").replace("`", "")
    styles = STYLE.findall(shown)
    assert not styles or styles[-1] == "\x1b[0m"


@given(TEXT)
def test_without_colour_text_is_itself(text: str) -> None:
    markdown = Markdown(colour=False)
    assert markdown.feed(text) + markdown.end() == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a **b** c", "a \x1b[0m\x1b[1mb\x1b[0m c"),
        ("use `x**y` now", "use \x1b[0m\x1b[36mx**y\x1b[0m now"),
        ("# Head\ntext", "\x1b[1m# Head\x1b[0m\ntext"),
        ("```py\n**x**\n```\n", "\x1b[2m```py\x1b[0m\n\x1b[36m**x**\x1b[0m\n\x1b[2m```\x1b[0m\n"),
        ("2 * 3 * 4", "2 * 3 * 4"),
    ],
)
def test_marks_become_styles(text: str, shown: str) -> None:
    assert whole(text) == shown
