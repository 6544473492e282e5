"""Rows of text, wrapped to a width without dropping any character."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from moot.cli.terminal.text import clusters, width_of

Spans: TypeAlias = list[tuple[str, str]]
"""The pieces (style, text) of one line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One item. `right` is aligned to the right edge if there is room, otherwise on the next line."""

    text: str
    style: str = ""
    right: str = ""
    right_style: str = "dim"
    indent: int = 2
    spans: tuple[tuple[str, str], ...] = ()
    """The text as pieces of (style, text), if it has more than one style."""
    prose: bool = False
    """True for prose, which is wrapped between words."""


def render(rows: Iterable[Row], width: int) -> list[Spans]:
    """Return the rows as lines of at most this width."""
    return [line for row in rows for line in _row(row, max(width, 8))]


def _wrap(text: str, width: int) -> Iterator[str]:
    """Yield pieces of the text that fit, without dropping anything, not even spaces. Yield at least one piece."""
    piece, used = "", 0
    for cluster, columns in clusters(text):
        if piece and used + columns > width:
            yield piece
            piece, used = "", 0
        piece += cluster
        used += columns
    yield piece


def wrap_words(text: str, width: int) -> Iterator[str]:
    """Yield lines of at most this width, broken between words where possible. Yield at least one line."""
    line = ""
    for word in text.split():
        if line and width_of(line) + 1 + width_of(word) > width:
            yield line
            line = ""
        *whole, line = _wrap(f"{line} {word}" if line else word, width)
        yield from whole
    yield line


def _row(row: Row, width: int) -> Iterator[Spans]:
    indent = " " * min(row.indent, width // 4)
    pieces = list((wrap_words if row.prose else _wrap)(row.text, width - len(indent)))
    last = len(indent) + width_of(pieces[-1])
    same_line = bool(row.right) and last + 2 + width_of(row.right) <= width
    rest = list(row.spans) if not row.prose else []
    for at, piece in enumerate(pieces):
        line: Spans = [("", indent), *(_take(rest, len(piece)) if rest else [(row.style, piece)])]
        if same_line and at == len(pieces) - 1:
            line += [("", " " * (width - last - width_of(row.right))), (row.right_style, row.right)]
        yield line
    if row.right and not same_line:
        for piece in wrap_words(row.right, width - len(indent) - 2):
            yield [("", f"{indent}  "), (row.right_style, piece)]


def _take(spans: Spans, characters: int) -> Spans:
    """Remove the first characters from the spans and return them."""
    taken: Spans = []
    while characters and spans:
        style, text = spans.pop(0)
        taken.append((style, text[:characters]))
        if len(text) > characters:
            spans.insert(0, (style, text[characters:]))
        characters -= min(characters, len(text))
    return taken
