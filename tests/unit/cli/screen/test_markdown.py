from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moot.cli.terminal.look import Look
from moot.cli.terminal.text import width_of
from moot.cli.transcript.markdown import Markdown, draw_markdown
from moot.guard.terminal import clean

SGR = re.compile(r"\x1b\[[0-9;]*m")
COLOUR = Look(40, colour=True)
PLAIN = Look(40, colour=False)
ASCII = Look(40, colour=False, unicode=False)

MARKS = ["*", "**", "***", "_", "__", "~~", "`", "``", "```", "\\", "[", "](", ")", "!", "<", ">", "&lt;", "&", "|", "#", "- ", "1. ", "> "]
PIECES = [
    *MARKS,
    "[a](http://b.c)",
    "<https://a.b>",
    "<br>",
    "<br />",
    "\n",
    "\n",
    "\n\n",
    "    ",
    "  ",
    "\t",
    "\n```py\n",
    "\n```\n",
    "\n~~~\n",
    "\n| a | b |\n|---|:-:|\n| c | d |\n",
    "|---|",
    "\n---\n",
    "\n# ",
    "\n- [ ] ",
    "\n2) ",
    "word",
    "a",
    "a_b",
    "x" * 45,
    "some words of text ",
    "日本語の文章。",
    "👨‍👩‍👧",
    "❤️",
    "e\u0301\u0302",
    "\u202e",
    "\x1b[31m",
    "\x1b]8;;http://x\x07",
    "\x9b2J",
    "\r",
    "\b",
    "\x00",
    '"',
    "'",
    " ",
]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


def finished(look: Look, text: str, cuts: list[int]) -> list[str]:
    markdown = Markdown(look)
    lines: list[str] = []
    before = 0
    for at in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        markdown.feed(text[before:at])
        before = at
        lines += map(look.painted, markdown.take())
        if at % 3 == 0:
            assert markdown.live() == markdown.live()
    markdown.end()
    return [*lines, *map(look.painted, markdown.take())]


def shown(look: Look, text: str) -> list[str]:
    return [look.painted(line) for line in draw_markdown(look, text)]


@settings(max_examples=60, deadline=None)
@example("*a `b*", [3])
@example("[a](b" + "c" * 3000 + ")", list(range(0, 3000, 101)))
@example("**" + "a " * 300 + "**", list(range(0, 600, 11)))
@given(texts, st.lists(st.integers(0, 10_000), max_size=20))
def test_any_chunking_gives_the_same_lines(text: str, cuts: list[int]) -> None:
    for look in (COLOUR, PLAIN):
        assert finished(look, text, cuts) == shown(look, text)


@settings(max_examples=40, deadline=None)
@example(">\n- [ ] \n")
@example("# |\n---\n")
@example("---\n\\[*")
@example("```py\n\n    ")
@example("- > a\n  >\n- b\n")
@example("> - a\n>\n> - b\n")
@given(texts)
def test_one_character_at_a_time_gives_the_same_lines(text: str) -> None:
    assert finished(COLOUR, text, list(range(len(text)))) == shown(COLOUR, text)


@settings(max_examples=60, deadline=None)
@example("- - - - *", 8, False)
@example("> > > > > a\n>\n> > > > > - b", 8, True)
@example("- - - - - ---\n", 8, True)
@given(texts, st.integers(8, 70), st.booleans())
def test_lines_fit_the_width_and_have_no_trailing_spaces_and_no_control_sequences_but_sgr(text: str, width: int, unicode: bool) -> None:
    look = Look(width, colour=True, unicode=unicode)
    markdown = Markdown(look)
    markdown.feed(text)
    live = [look.painted(line) for line in markdown.live()]
    for line in (*live, *shown(look, text)):
        bare = SGR.sub("", line)
        assert width_of(bare) <= width, bare
        assert bare == bare.rstrip(" ")
        assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in bare), bare
        assert unicode or bare.isascii()


@settings(max_examples=60, deadline=None)
@given(texts.filter(lambda text: "|" not in text and "\\" not in text))
def test_no_character_of_the_text_is_lost(text: str) -> None:
    assert letters(" ".join(shown(Look(10_000, colour=False), text)).replace("[image]", "")) == letters(clean(text).replace("[image]", ""))


def letters(text: str) -> list[str]:
    return sorted("".join(re.findall(r"[^\W\d_]+", re.sub(r"&lt;|<br ?/?>", " ", text))))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("**bold** and *it*", ["\x1b[1mbold\x1b[0m and \x1b[3mit\x1b[0m"]),
        ("a `c` b", ["a \x1b[36mc\x1b[0m b"]),
        ("***both***", ["\x1b[1;3mboth\x1b[0m"]),
        ("**bold *it***", ["\x1b[1mbold \x1b[0m\x1b[1;3mit\x1b[0m"]),
        ("~~gone~~ ~kept~", ["\x1b[9mgone\x1b[0m ~kept~"]),
        ("snake_case_name 2 * 3 * 4", ["snake_case_name 2 * 3 * 4"]),
        ("**over\ntwo lines**", ["\x1b[1mover\x1b[0m", "\x1b[1mtwo lines\x1b[0m"]),
        ("**open", ["**open"]),
        ("`*not it*`", ["\x1b[36m*not it*\x1b[0m"]),
        ("*a `b* c` d*", ["\x1b[3ma \x1b[0m\x1b[3;36mb* c\x1b[0m\x1b[3m d\x1b[0m"]),
        (r"\*plain\* &lt;b&gt;", ["*plain* <b>"]),
        ("line one\\\nline two<br>three", ["line one", "line two", "three"]),
        ("# One", ["\x1b[1;4;35mOne\x1b[0m"]),
        ("### Three ##", ["\x1b[1mThree\x1b[0m"]),
        ("> said\nlazily", ["\x1b[2m│ \x1b[0msaid", "\x1b[2m│ \x1b[0mlazily"]),
        ("- a\n  - b\n- [x] c", ["\x1b[2m• \x1b[0ma", "  \x1b[2m◦ \x1b[0mb", "\x1b[2m☑ \x1b[0mc"]),
        ("1. a\n   - b\n10) c", ["1. a", "   \x1b[2m◦ \x1b[0mb", "10) c"]),
        ("[bold red]x[/] {0} %s", ["[bold red]x[/] {0} %s"]),
        ("a\n***\nb", ["a", "", "\x1b[2m" + "─" * 40 + "\x1b[0m", "", "b"]),
        ("    code", ["    code"]),
        ("", []),
        ("\n\n\n", []),
        ("a\n\n\n\nb", ["a", "", "b"]),
    ],
)
def test_markdown_is_drawn(text: str, lines: list[str]) -> None:
    assert shown(COLOUR, text) == lines


def test_code_is_highlighted_and_keeps_its_spaces() -> None:
    assert shown(COLOUR, "```python\ndef f():\n\n    return '''a\nb''' # c\n```") == [
        "\x1b[35mdef\x1b[0m f():",
        "",
        "    \x1b[35mreturn\x1b[0m \x1b[32m'''a\x1b[0m",
        "\x1b[32mb'''\x1b[0m \x1b[90m# c\x1b[0m",
    ]


def test_without_colour_the_markdown_marks_stay() -> None:
    text = "# Head\n\n**b** `c` *i*\n\n```py\nx\n```"
    assert shown(PLAIN, text) == ["# Head", "", "**b** `c` *i*", "", "```py", "x", "```"]


def test_without_unicode_everything_is_ascii() -> None:
    assert shown(ASCII, "- é\n> 日\n\n---") == ["- \\xe9", "| \\u65e5", "", "-" * 40]


def test_a_paragraph_is_finished_when_the_next_block_begins() -> None:
    markdown = Markdown(Look(20, colour=False))
    markdown.feed("one two three four five\n\n")
    assert markdown.take() == []
    assert len(markdown.live()) == 2
    markdown.feed("# Next\n")
    assert [PLAIN.painted(line) for line in markdown.take()] == ["one two three four", "five"]


def test_code_is_finished_line_by_line() -> None:
    markdown = Markdown(PLAIN)
    markdown.feed("```py\nfirst\nsec")
    assert [PLAIN.painted(line) for line in markdown.take()] == ["```py", "first"]
    assert [PLAIN.painted(line) for line in markdown.live()] == ["sec"]


def test_a_table_fits_the_terminal_or_becomes_a_list() -> None:
    text = "| Name | What it is for |\n|---|--:|\n| a | a long description of the thing |\n| b |\n"
    assert shown(Look(30, colour=False), text) == [
        "Name │          What it is for",
        "─────┼────────────────────────",
        "a    │   a long description of",
        "     │               the thing",
        "b    │",
    ]
    many = "|" + "|".join("abcdefgh") + "|\n|" + "-|" * 8 + "\n|" + "|".join(["word"] * 8) + "|\n"
    assert shown(Look(20, colour=False), many)[0] == "a: word"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        ("[x](https://bank.example@evil.example/)", "x (https://bank.example@evil.example/) [host: evil.example]"),
        ("[x](https://b\u0430nk.example/)", "x (https://b\u0430nk.example/) [host: xn--bnk-6cd.example]"),
        ("<https://a.example>", "https://a.example"),
        ("[https://a.example](https://a.example)", "https://a.example"),
        ("![pic](http://a.example/p.png)", "[image] pic (http://a.example/p.png)"),
    ],
)
def test_the_address_of_a_link_is_always_visible(text: str, line: str) -> None:
    assert shown(Look(200, colour=False), text) == [line]
    assert "\x1b]8" not in "".join(shown(Look(200, colour=True), text))


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["*a ", "`a", "[a](", "**a*", "word ", "x", "|", "> ", "- ", "<", "\u200d", "``` ", "*a `", "[", "a\n", "| a |\n", "\\", "_a_b*c"],
)
def test_the_time_is_linear(piece: str) -> None:
    markdown = Markdown(Look(80, colour=True))
    text = piece * (30_000 // len(piece))
    for at in range(0, len(text), 200):
        markdown.feed(text[at : at + 200])
        markdown.live()
        markdown.take()
    markdown.end()
