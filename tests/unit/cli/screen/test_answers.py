"""A corpus of model answers, streamed in random chunks and compared with a parse of the whole text."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from moot.cli.terminal.look import Look
from moot.cli.terminal.text import width_of
from moot.cli.transcript.markdown import Markdown, draw_markdown
from moot.markup.markdown import Block, new_parser
from moot.markup.stream import MarkdownStream, Piece

ANSWERS = sorted((Path(__file__).parents[3] / "recorded" / "answers").glob("*.md"))
EXTENDED = {"math", "math-unclosed", "html", "table-after-list", "table-breaks", "french-grammar"}
"""Answers in which we read more than GFM: formulas, `<br>`, and a table that directly follows a list."""
DEFINED_LATER = {"definition-with-long-title", "links", "footnotes"}
"""Answers that use a link definition before it appears. A stream shows such a link as plain text."""

SGR = re.compile(r"\x1b\[[0-9;]*m")
Shape = tuple[object, ...]


def chunks(text: str, seed: int) -> list[str]:
    """Cut the text at random; small seeds give small chunks."""
    chance = random.Random(seed)
    longest = (1, 5, 40, 400)[seed % 4] if len(text) < 5000 else (40, 400)[seed % 2]
    cut: list[str] = []
    while text:
        length = chance.randint(1, longest)
        cut.append(text[:length])
        text = text[length:]
    return cut


def of_tokens(tokens: list[Token], *, inline: bool) -> list[Shape]:
    """Describe the blocks of a parse: depth, kind and text."""
    shapes: list[Shape] = []
    for token in tokens:
        if token.type == "inline":
            shapes.append((token.level, "inline", token.content, inline and shape_of_inline(token.children or [])))
        elif token.nesting >= 0:
            content = re.sub(r"\n*\Z", "", token.content)
            shapes.append((token.level, token.type.removesuffix("_open"), content, token.tag, token.info.strip()))
    return [shape for shape in shapes if shape[1] != "definition"]


def shape_of_inline(tokens: list[Token]) -> list[Shape]:
    return [(token.type, token.content, token.attrGet("href"), token.attrGet("src")) for token in tokens]


def of_blocks(blocks: list[Block], *, inline: bool, level: int = 0) -> list[Shape]:
    shapes: list[Shape] = []
    for block in blocks:
        token = block.token
        leaf = block.inline or block.kind in ("paragraph", "heading", "th", "td")
        content = "" if leaf else re.sub(r"\n*\Z", "", token.content)
        shapes.append((level, block.kind, content, token.tag, token.info.strip()))
        if leaf:
            shapes.append((level + 1, "inline", token.content, inline and shape_of_inline(block.inline)))
        shapes += of_blocks(block.children, inline=inline, level=level + 1)
    return [shape for shape in shapes if shape[1] != "definition"]


def streamed(text: str, seed: int) -> list[Block]:
    """Return the blocks that a stream gives out, with the parts of one block put together."""
    stream = MarkdownStream()
    pieces: list[Piece] = []
    for chunk in chunks(text, seed):
        stream.feed(chunk)
        pieces += stream.advance()[0]
    pieces += stream.end()
    blocks: list[Block] = []
    for piece in pieces:
        if not piece.continued:
            blocks.append(piece.block)
        elif piece.block.kind == "fence":
            blocks[-1].token.content += piece.block.token.content
        elif piece.block.kind == "table":
            rows = [row for body in piece.block.children[1:] for row in body.children]
            blocks[-1].children[1].children += rows
        else:
            blocks[-1].children += piece.block.children
    return blocks


def reference() -> MarkdownIt:
    """Return the library's own GFM parser, without any of our rules."""
    parser = (
        MarkdownIt("gfm-like", {"html": False, "maxNesting": 70})
        .use(tasklists_plugin)
        .use(footnote_plugin, inline=False, move_to_end=False)
    )
    assert parser.linkify is not None
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    parser.normalizeLink = parser.normalizeLinkText = str  # type: ignore[method-assign, assignment]
    return parser


def lines_of(markdown: Markdown, look: Look) -> list[str]:
    return [look.painted(line) for line in markdown.take()]


def test_there_are_enough_answers() -> None:
    assert len(ANSWERS) >= 200


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_a_streamed_answer_has_the_blocks_of_the_whole_text(path: Path) -> None:
    text = path.read_text()
    inline = path.stem not in DEFINED_LATER
    parser = new_parser() if path.stem in EXTENDED else reference()
    expected = of_tokens(parser.parse(text), inline=inline)
    for seed in range(8):
        assert of_blocks(streamed(text, seed), inline=inline) == expected


@pytest.mark.slow
@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_finished_lines_do_not_depend_on_the_chunks_and_match_what_was_live(path: Path) -> None:
    text, look = path.read_text(), Look(60, colour=False)
    whole = [look.painted(line) for line in draw_markdown(look, text)]
    for seed in range(6):
        markdown = Markdown(look)
        printed: list[str] = []
        for number, chunk in enumerate(chunks(text, seed)):
            markdown.feed(chunk)
            printed += lines_of(markdown, look)
            if number % 7 == 0:
                markdown.live()
            assert printed == whole[: len(printed)]
        live = [look.painted(line) for line in markdown.live()] if len(text) < 5000 else None
        markdown.end()
        rest = lines_of(markdown, look)
        assert [*printed, *rest] == whole
        assert live is None or live == rest


@pytest.mark.slow
@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_no_line_is_wider_than_the_terminal(path: Path) -> None:
    text = path.read_text()
    for width in (20, 21, 27, 33, 40, 61, 80, 120, 200):
        look = Look(width, colour=True, unicode=width != 33)
        markdown = Markdown(look)
        shown: list[str] = []
        for chunk in chunks(text, width):
            markdown.feed(chunk)
            shown += lines_of(markdown, look)
        shown += [look.painted(line) for line in markdown.live()]
        markdown.end()
        shown += lines_of(markdown, look)
        assert max((width_of(SGR.sub("", line)) for line in shown), default=0) <= width


def calls_made(work: Callable[[], object]) -> int:
    """Return the number of Python functions that the work calls, a measure of its cost that does not depend on the machine."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.slow
def test_the_cost_of_a_line_does_not_grow_with_its_code_block() -> None:
    text = (ANSWERS[0].parent / "code-500-lines.md").read_text()
    look = Look(100, colour=True)
    draw_markdown(look, text)  # imports the lexer
    markdown = Markdown(look)

    def show(line: str) -> None:
        markdown.feed(line)
        markdown.take()
        markdown.live()

    costs = [calls_made(lambda line=line: show(line)) for line in text.splitlines(keepends=True)]
    assert max(costs[250:]) < 1.3 * max(costs[:250]), "only the last 200 lines are highlighted again"


def test_code_in_a_list_is_finished_line_by_line() -> None:
    look = Look(60, colour=False)
    markdown = Markdown(look)
    markdown.feed("1. Run:\n   ```sh\n   make\n   make install\n   ma")
    assert lines_of(markdown, look) == ["1. Run:", "", "   ```sh", "   make", "   make install"]
    assert [look.painted(line) for line in markdown.live()] == ["   ma"]


def test_a_table_is_held_until_it_has_50_rows_and_then_finished_row_by_row() -> None:
    look = Look(60, colour=False)
    markdown = Markdown(look)
    markdown.feed("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 49)
    assert lines_of(markdown, look) == []
    markdown.feed("| 1 | 2 |\n")
    assert len(lines_of(markdown, look)) == 52
    markdown.feed("| 3 | 4 |\n| 5")
    assert lines_of(markdown, look) == ["3 │ 4"]


def test_a_resize_neither_repeats_nor_loses_a_line() -> None:
    wide, narrow = Look(60, colour=False), Look(30, colour=False)
    markdown = Markdown(wide)
    markdown.feed("- one\n  - two with some more words than fit into thirty columns\n  - three\n  - fo")
    before = lines_of(markdown, wide)
    markdown.resize(narrow)
    markdown.feed("ur\n")
    markdown.end()
    assert [*before, *lines_of(markdown, narrow)] == [
        "• one",
        "  ◦ two with some more words than fit into thirty columns",
        "  ◦ three",
        "  ◦ four",
    ]
