"""Styled text: the styles, the width of text in columns, and wrapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import TypeAlias

from wcwidth import wcwidth

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


_JOINER = "\u200d"
_SELECTOR = "\ufe0f"
# characters known to take one column each, matched at once for speed
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03c9\u0410-\u044f\u2010-\u2027\u2190-\u2199\u2500-\u257f]*")


def width_of(text: str) -> int:
    """Return the maximum number of columns that a text without newlines takes on any terminal."""
    if text.isascii():
        return len(text)
    plain = _NARROW.match(text)
    begin = plain.end() if plain else 0
    return begin + sum(map(_columns, text[begin:]))


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if character == _SELECTOR:
        return 1  # this selector makes the narrow character before it wide
    return max(wcwidth(character), 0)


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a text that must not be split, each with its columns: a character with its combining and joined characters."""
    if text.isascii():
        yield from ((character, 1) for character in text)
        return
    begin = width = 0
    joined = True
    for at, character in enumerate(text):
        columns = _columns(character)
        if columns and not joined and character != _SELECTOR:
            yield text[begin:at], width
            begin, width = at, 0
        width += columns
        joined = character == _JOINER
    if begin < len(text):
        yield text[begin:], width


def cut(text: str, columns: int, *, mark: str) -> str:
    """Return the text, or if it takes more than `columns` columns, its start followed by `mark`."""
    if width_of(text) <= columns:
        return text
    room = columns - width_of(mark)
    if room < 0:
        return ""
    return text[: _fitting(text, room)].rstrip(" ") + mark


def expanded(text: str) -> str:
    """Replace tabs with spaces, at tab stops of four."""
    return text.expandtabs(4) if "\t" in text else text


_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-"
    "\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\U00020000-\U0003fffd"
)
_CLOSING = "、。，．！？；：）」』】〉》”’"
_IDEOGRAPH = re.compile(f"[{_WIDE}]")
_WORDS = re.compile(f" +|[{_WIDE}]|[^ {_WIDE}]+")
_ENOUGH = 3
"""Divisor: an indent leaves at least one third of the line for words."""


class Wrap:
    """Wraps one paragraph of styled text. `taken` holds the complete lines; `end` adds the last one."""

    def __init__(self, columns: int, first: Line, rest: Line) -> None:
        self._columns = columns
        self._rest = narrowed(rest, columns)
        self._line = narrowed(first, columns)
        self._used = line_width(self._line)
        self._has_word = False
        """True if the line already has a word."""
        self._gap: Piece = ("", 0)
        self._word: Line = []
        self._word_width = 0
        self.taken: list[Line] = []

    def copy(self) -> Wrap:
        """Return an independent copy of the unfinished part."""
        twin = Wrap(self._columns, [], [])
        twin._rest, twin._line, twin._used, twin._has_word = self._rest, [*self._line], self._used, self._has_word
        twin._gap, twin._word, twin._word_width = self._gap, [*self._word], self._word_width
        return twin

    def add(self, text: str, style: Style) -> None:
        """Add text without newlines."""
        for token in _WORDS.findall(text):
            if token[0] == " ":
                self._commit()
                self._gap = (" " * (len(self._gap[0]) + len(token)), style)
                continue
            if self._word and _breaks(self._word[-1][0][-1], token[0]):
                self._commit()
            if self._word and self._word[-1][1] == style:  # one piece, so that no cluster is split at the end of a chunk
                self._word[-1] = (self._word[-1][0] + token, style)
            else:
                self._word.append((token, style))
            self._word_width += width_of(token)
            if self._word_width > self._columns:
                self._split_word()

    def newline(self) -> None:
        """Break the line."""
        self._commit()
        self._break()

    def end(self) -> None:
        """Finish the paragraph."""
        self._commit()
        if self._has_word or self._line:
            self.taken.append(self._line)
        self._line, self._has_word = [], False

    def _commit(self) -> None:
        if not self._word:
            return
        gap, style = self._gap
        if self._has_word and self._used + len(gap) + self._word_width > self._columns:
            self._break()
            gap = ""
        if not self._has_word and self._word_width > self._columns - self._used:
            self._split_word()
        elif gap and (self._has_word or self._used + len(gap) + self._word_width <= self._columns):
            self._line.append((gap, style))
            self._used += len(gap)
        self._line.extend(self._word)
        self._used += self._word_width
        self._has_word = True
        self._gap, self._word, self._word_width = ("", 0), [], 0

    def _break(self) -> None:
        self.taken.append(self._line)
        self._line = [*self._rest]
        self._used = line_width(self._rest)
        self._has_word = False
        self._gap = ("", 0)

    def _split_word(self) -> None:
        """Split a word that is longer than a line."""
        if self._has_word:
            self._break()
        while self._word_width > (room := self._columns - self._used):
            head, tail = _split(self._word, room)
            self._line.extend(head)
            self._break()
            self._word, self._word_width = tail, line_width(tail)


def wrapped(pieces: Line, columns: int, first: Line | None = None, rest: Line | None = None) -> list[Line]:
    """Wrap a complete paragraph; return at least one line."""
    wrap = Wrap(columns, first or [], rest or [])
    for text, style in pieces:
        wrap.add(text, style)
    wrap.end()
    return wrap.taken or [[]]


def _breaks(before: str, after: str) -> bool:
    """Return True if a line may break between two characters: next to wide ones, but not before closing punctuation."""
    if after in _CLOSING or not width_of(after):
        return False
    return _is_wide(before) or _is_wide(after)


def _is_wide(character: str) -> bool:
    return character >= "\u1100" and _IDEOGRAPH.match(character) is not None and width_of(character) == 2


def _split(word: Line, room: int) -> tuple[Line, Line]:
    """Split a word into the part that fits into `room` columns, which has at least one character, and the rest."""
    head: Line = []
    for index, (text, style) in enumerate(word):
        width = width_of(text)
        if width <= room:
            head.append((text, style))
            room -= width
            continue
        at = _fitting(text, room)
        if not at and not head:
            at = next((at for at in range(len(text), 0, -1) if width_of(text[:at]) <= room), 1)
        if at:
            head.append((text[:at], style))
        return head, [(text[at:], style), *islice(word, index + 1, None)]
    return head, []


def _fitting(text: str, room: int) -> int:
    taken = at = 0
    for piece, width in clusters(text):
        if taken + width > room:
            break
        taken, at = taken + width, at + len(piece)
    return at


def line_width(line: Line) -> int:
    """Return the maximum number of columns that a styled line takes on any terminal."""
    return sum(width_of(text) for text, _ in line)


def narrowed(line: Line, columns: int) -> Line:
    """Shorten an indent that leaves too little room for words."""
    room = columns - max(columns // _ENOUGH, 1)
    kept: Line = []
    for text, style in line:
        part = text[: _fitting(text, room)]
        if part:
            kept.append((part, style))
        room -= width_of(part)
    return kept


def wrapped_hard(line: Line, columns: int, indent: Line) -> list[Line]:
    """Split a line of code at `columns`, keeping all its spaces. Each line starts with the indent."""

    indent = narrowed(indent, columns)
    room = columns - line_width(indent)
    lines: list[Line] = []
    while line_width(line) > room:
        head, line = _split(line, room)
        lines.append([*indent, *head])
    return [*lines, [*indent, *line]]
