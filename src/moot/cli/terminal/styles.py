"""Text styles, written as SGR sequences."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

Style: TypeAlias = int
Piece: TypeAlias = tuple[str, Style]
Line: TypeAlias = list[Piece]
"""One line on a terminal, without its newline."""

PLAIN = 0
BOLD, DIM, ITALIC, UNDERLINE, REVERSE, STRIKE = (1 << bit for bit in range(6))
HEADING, CODE, LINK, KEYWORD, STRING, CONSTANT, COMMENT, ADDED, REMOVED, GOOD, BAD, WARNING = (1 << bit for bit in range(6, 18))

_ATTRIBUTES = {BOLD: "1", DIM: "2", ITALIC: "3", UNDERLINE: "4", REVERSE: "7", STRIKE: "9"}
# from the 16 standard colours, which themes keep readable; never plain black, white or yellow
_COLOURS = {
    HEADING: "35",
    CODE: "36",
    LINK: "34",
    KEYWORD: "35",
    STRING: "32",
    CONSTANT: "36",
    COMMENT: "90",
    ADDED: "32",
    REMOVED: "31",
    GOOD: "32",
    BAD: "31",
    WARNING: "33",
}
_ON_LIGHT = {COMMENT: "2", WARNING: "35"}


@cache
def _opening(style: Style, light: bool) -> str:
    codes = [code for bit, code in _ATTRIBUTES.items() if style & bit]
    colours = [_ON_LIGHT.get(bit, code) if light else code for bit, code in _COLOURS.items() if style & bit]
    return f"\x1b[{';'.join([*codes, *colours[:1]])}m" if codes or colours else ""


def painted(line: Line, *, colour: bool, light: bool = False) -> str:
    """Return the line as terminal text, without trailing spaces and with every style closed."""
    last = len(line)
    while last and not line[last - 1][0].strip(" "):
        last -= 1
    if not last:
        return ""
    text, style = line[last - 1]
    pieces = [*line[: last - 1], (text.rstrip(" "), style)]
    if not colour:
        return "".join(text for text, _ in pieces)
    shown: list[str] = []
    before = ""
    for text, style in pieces:
        opening = _opening(style, light)
        if opening != before:
            shown.append(f"\x1b[0m{opening}" if before else opening)
            before = opening
        shown.append(text)
    if before:
        shown.append("\x1b[0m")
    return "".join(shown)
