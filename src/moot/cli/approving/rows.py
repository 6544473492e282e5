"""Lines of a prompt cut to a width without losing a character. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from moot.cli.screen.cells import clusters, width_of
from moot.guard.terminal import visible

__all__ = ["Row", "Spans", "drawn", "spelled", "wrapped"]

Spans: TypeAlias = list[tuple[str, str]]
"""(style, text) pieces of one line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to say; `right` stands at the right edge where there is room, else on a line below."""

    text: str
    style: str = ""
    right: str = ""
    right_style: str = "dim"
    indent: int = 2
    spans: tuple[tuple[str, str], ...] = ()
    """The text in pieces of (style, text), where it has more than one style."""
    prose: bool = False
    """Our own words, or a model's: broken between words where that goes."""


def spelled(text: str) -> list[str]:
    """Untrusted text as lines, nothing in it hidden: control characters and tabs are spelled out."""
    return visible(text).replace("\t", "\\t").split("\n")


def drawn(rows: Iterable[Row], width: int) -> list[Spans]:
    """The rows as lines of at most that width."""
    return [line for row in rows for line in _row(row, max(width, 8))]


def wrapped(text: str, width: int) -> Iterator[str]:
    """The text in pieces that fit; nothing is left out, not even spaces. At least one piece."""
    piece, used = "", 0
    for cluster, columns in clusters(text):
        if piece and used + columns > width:
            yield piece
            piece, used = "", 0
        piece += cluster
        used += columns
    yield piece


def _prose(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and width_of(line) + 1 + width_of(word) > width:
            yield line
            line = ""
        *whole, line = wrapped(f"{line} {word}" if line else word, width)
        yield from whole
    yield line


def _row(row: Row, width: int) -> Iterator[Spans]:
    indent = " " * min(row.indent, width // 4)
    pieces = list((_prose if row.prose else wrapped)(row.text, width - len(indent)))
    last = len(indent) + width_of(pieces[-1])
    beside = bool(row.right) and last + 2 + width_of(row.right) <= width
    rest = list(row.spans) if not row.prose else []
    for at, piece in enumerate(pieces):
        line: Spans = [("", indent), *(_taken(rest, len(piece)) if rest else [(row.style, piece)])]
        if beside and at == len(pieces) - 1:
            line += [("", " " * (width - last - width_of(row.right))), (row.right_style, row.right)]
        yield line
    if row.right and not beside:
        for piece in _prose(row.right, width - len(indent) - 2):
            yield [("", f"{indent}  "), (row.right_style, piece)]


def _taken(spans: Spans, characters: int) -> Spans:
    """The first so many characters of the spans, which are taken from them."""
    taken: Spans = []
    while characters and spans:
        style, text = spans.pop(0)
        taken.append((style, text[:characters]))
        if len(text) > characters:
            spans.insert(0, (style, text[characters:]))
        characters -= min(characters, len(text))
    return taken
