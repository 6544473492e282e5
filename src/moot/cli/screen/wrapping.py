"""Words into lines, as they come: a line is given out as soon as the next word shows that it is full.

What comes out depends on the text alone, never on how it was cut into pieces.
"""

from __future__ import annotations

import re
from itertools import islice

from moot.cli.screen.cells import clusters, width_of
from moot.cli.screen.styles import Line, Piece, Style

__all__ = ["Wrap", "wrapped", "wrapped_hard"]

_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-"
    "\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\U00020000-\U0003fffd"
)
_CLOSING = "、。，．！？；：）」』】〉》”’"
_IDEOGRAPH = re.compile(f"[{_WIDE}]")
_WORDS = re.compile(f" +|[{_WIDE}]|[^ {_WIDE}]+")
_ENOUGH = 3
"""A hanging indent leaves at least a third of the line to words."""


class Wrap:
    """One paragraph of styled text. `taken` has the lines that are full; `end` adds the last one."""

    def __init__(self, columns: int, first: Line, rest: Line) -> None:
        self._columns = columns
        self._rest = _narrowed(rest, columns)
        self._line = _narrowed(first, columns)
        self._used = _width(self._line)
        self._begun = False
        """Whether the line has a word."""
        self._gap: Piece = ("", 0)
        self._word: Line = []
        self._word_width = 0
        self.taken: list[Line] = []

    def copy(self) -> Wrap:
        """The same paragraph, to be gone on with apart; without the lines that are full."""
        twin = Wrap(self._columns, [], [])
        twin._rest, twin._line, twin._used, twin._begun = self._rest, [*self._line], self._used, self._begun
        twin._gap, twin._word, twin._word_width = self._gap, [*self._word], self._word_width
        return twin

    def add(self, text: str, style: Style) -> None:
        """Text without newlines."""
        for token in _WORDS.findall(text):
            if token[0] == " ":
                self._commit()
                self._gap = (" " * (len(self._gap[0]) + len(token)), style)
                continue
            if self._word and _breaks(self._word[-1][0][-1], token[0]):
                self._commit()
            if self._word and self._word[-1][1] == style:  # one piece, so that no cluster is torn where a chunk ended
                self._word[-1] = (self._word[-1][0] + token, style)
            else:
                self._word.append((token, style))
            self._word_width += width_of(token)
            if self._word_width > self._columns:
                self._tear()

    def resize(self, columns: int) -> None:
        """Other lines from here on; what is on the line already stays, cut where it is too long now."""
        self._columns = columns
        self._rest = _narrowed(self._rest, columns)
        if self._used > columns:
            self.taken += wrapped_hard(self._line, columns, [])
            self._line, self._begun, self._gap = [*self._rest], False, ("", 0)
            self._used = _width(self._line)

    def newline(self) -> None:
        """The line is over, whatever is on it."""
        self._commit()
        self._break()

    def end(self) -> None:
        """The paragraph is over."""
        self._commit()
        if self._begun or self._line:
            self.taken.append(self._line)
        self._line, self._begun = [], False

    def _commit(self) -> None:
        if not self._word:
            return
        gap, style = self._gap
        if self._begun and self._used + len(gap) + self._word_width > self._columns:
            self._break()
            gap = ""
        if not self._begun and self._word_width > self._columns - self._used:
            self._tear()
        elif gap and (self._begun or self._used + len(gap) + self._word_width <= self._columns):
            self._line.append((gap, style))
            self._used += len(gap)
        self._line.extend(self._word)
        self._used += self._word_width
        self._begun = True
        self._gap, self._word, self._word_width = ("", 0), [], 0

    def _break(self) -> None:
        self.taken.append(self._line)
        self._line = [*self._rest]
        self._used = _width(self._rest)
        self._begun = False
        self._gap = ("", 0)

    def _tear(self) -> None:
        """A word longer than a line fills lines; what is left of it is a word again."""
        if self._begun:
            self._break()
        while self._word_width > (room := self._columns - self._used):
            head, tail = _torn(self._word, room)
            self._line.extend(head)
            self._break()
            self._word, self._word_width = tail, _width(tail)


def wrapped(pieces: Line, columns: int, first: Line | None = None, rest: Line | None = None) -> list[Line]:
    """A whole paragraph as lines; at least one."""
    wrap = Wrap(columns, first or [], rest or [])
    for text, style in pieces:
        wrap.add(text, style)
    wrap.end()
    return wrap.taken or [[]]


def _breaks(before: str, after: str) -> bool:
    """Whether a line may end between two characters without a blank: at wide ones, but not before what closes."""
    if after in _CLOSING or not width_of(after):
        return False
    return _is_wide(before) or _is_wide(after)


def _is_wide(character: str) -> bool:
    return character >= "\u1100" and _IDEOGRAPH.match(character) is not None and width_of(character) == 2


def _torn(word: Line, room: int) -> tuple[Line, Line]:
    """What of a word fits into that many columns, and what is left: at least one character is taken."""
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


def _width(line: Line) -> int:
    return sum(width_of(text) for text, _ in line)


def _narrowed(line: Line, columns: int) -> Line:
    """An indent that leaves room for words."""
    room = columns - max(columns // _ENOUGH, 1)
    kept: Line = []
    for text, style in line:
        part = text[: _fitting(text, room)]
        if part:
            kept.append((part, style))
        room -= width_of(part)
    return kept


def wrapped_hard(line: Line, columns: int, indent: Line) -> list[Line]:
    """A line of code as lines that are filled, wherever they break; its blanks stay."""
    indent = _narrowed(indent, columns)
    room = columns - _width(indent)
    lines: list[Line] = []
    while _width(line) > room:
        head, line = _torn(line, room)
        lines.append([*indent, *head])
    return [*lines, [*indent, *line]]
