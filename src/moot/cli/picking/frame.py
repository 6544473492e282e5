"""The list's first picture, on the screen before anything is loaded that could act on it."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence

from moot.cli.lines import Lines
from moot.cli.picking.drawing import Line, Sheet, View, draw, speaks_unicode, typed
from moot.cli.picking.keyboard import Keyboard

CODES = {"title": "1", "head": "4", "selected": "7", "dim": "90", "key": "1"}
"""The styles as the terminal's own attributes; `dim` only where there is colour."""
_BEGIN, _END = "\x1b[?2004h\x1b[?1l\x1b[?7l", "\x1b[?7h\x1b[?2004l"
"""Pastes are marked, arrows are plain, long lines do not wrap: as prompt-toolkit has it while it runs; and back."""


class Frame:
    """One picture below what is in the terminal, with the cursor behind the filter; it goes away for a stop and for an end."""

    def __init__(self, view: View, keyboard: Keyboard, output: Lines) -> None:
        self._view = view
        self._keyboard = keyboard
        self._output = output
        self._shown = False
        keyboard.hide, keyboard.show = self.hide, self.show
        self.size = os.terminal_size((0, 0))
        """Of the terminal that it was drawn for."""
        self.lines: Sequence[Line] = ()

    def show(self) -> None:
        """Draws it, unless the terminal is too low for it."""
        self.size = terminal_size()
        sheet = Sheet(self.size.columns, self.size.lines, speaks_unicode(), width)
        self.lines = draw(self._view, sheet)
        if len(self.lines) > self.size.lines:
            return
        text = "\r\n".join("".join(self._styled(style, piece) for style, piece in line) for line in self.lines)
        column = sum(width(piece) for _, piece in typed(self._view, sheet)[:2])
        behind_filter = f"\r{_up(len(self.lines) - 2)}\x1b[{column}C"
        self._output.put(f"{_BEGIN}\r{text}{behind_filter}", ends_line=True)
        self._shown = True

    def hide(self) -> None:
        """Takes it away; the cursor is where it was before."""
        if self._shown:
            self._output.put(f"{self._top()}\x1b[J{_END}", ends_line=True)
        self._shown = False

    def _top(self) -> str:
        return f"\r{_up(1)}" if self._shown else ""

    def hand_over(self, lines: Sequence[Line], size: tuple[int, int]) -> str | None:
        """To who reads the keys and draws from here on, in columns and rows of that size: what brings the cursor to the first line.

        None when those very lines are on the screen already, and the cursor is behind the filter.
        """
        same = self._shown and (lines, size) == (self.lines, self.size)
        top = self._top()
        self._shown = False
        self._keyboard.hand_over()
        return None if same else top

    def _styled(self, style: str, text: str) -> str:
        code = CODES.get(style, "")
        if not code or not text or (style == "dim" and not self._output.stdout_colour):
            return text
        return f"\x1b[{code}m{text}\x1b[0m"


def terminal_size() -> os.terminal_size:
    """Of stdout; 80 columns and 24 rows of a terminal that does not know."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:  # it is gone
        columns = rows = 0
    return os.terminal_size((columns or 80, rows or 24))


def width(text: str) -> int:
    """Terminal cells, nearly: the whole table of widths takes longer to load than this picture may take."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _up(lines: int) -> str:
    return f"\x1b[{lines}A" if lines > 0 else ""
