from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.engine.titles import clean_title
from moot.guard.terminal import clean
from moot.runtime.titles import first_line
from moot.types.message import Part, text_part

HEADER = "src/moot/app.py:\n\nimport os\nimport sys\n"
PICTURE: Part = {"type": "file", "mediaType": "image/png", "filename": "cat.png", "url": "data:,"}


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        (["plain question"], "plain question"),
        (["\n\n   indented,\tand   spaced  \nmore"], "indented, and spaced"),
        ([HEADER, "what is wrong here?"], "what is wrong here?"),
        ([HEADER], "app.py"),
        (["Look at this:\n\ncode"], "Look at this:"),
        (["/compact\nnow go on"], "now go on"),
        (["/compact"], "/compact"),
        (["/etc/hosts is odd"], "/etc/hosts is odd"),
        (["```python\nprint(1)\n```"], "print(1)"),
        (["---\n***\nwords"], "words"),
        (["a\x1b[2Jb\x07"], "ab"),
        (["x" * 200], "x" * 79 + "…"),
        (["word " * 40], ("word " * 15).strip() + "…"),
        ([""], ""),
        ([], ""),
    ],
)
def test_the_first_line_of_the_prompt_is_the_title(texts: list[str], title: str) -> None:
    assert first_line([text_part(text) for text in texts]) == title


def test_a_prompt_with_only_an_image_uses_its_name() -> None:
    assert first_line([PICTURE]) == "cat.png"
    assert first_line([PICTURE, text_part("who is it?")]) == "who is it?"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Release plans", "Release plans"),
        ('"Release plans."', "Release plans"),
        ("# **Title: Release plans**", "Release plans"),
        ("<think>they want\na title</think>\n\nRelease plans", "Release plans"),
        ("<think>never closed", ""),
        ("\n\n  Release \x1b]0;evil\x07 plans\nand more", "Release plans"),
        ("“発表の計画”", "発表の計画"),
        ("word " * 40, ("word " * 11).strip() + "…"),
        ("...", ""),
        ("", ""),
    ],
)
def test_a_models_title_is_one_short_clean_line(said: str, title: str) -> None:
    assert clean_title(said) == title


@given(st.text())
def test_any_text_gives_a_short_title_without_control_characters(text: str) -> None:
    for title in (clean_title(text), first_line([text_part(text)])):
        assert len(title) <= 80 and "\n" not in title and clean(title) == title
