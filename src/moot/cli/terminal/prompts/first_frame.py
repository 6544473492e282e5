"""The first frame of the picker, drawn before prompt-toolkit is imported. Keys typed meanwhile are kept for the application."""

from __future__ import annotations

import os
import signal
import sys
import termios
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from moot.cli.console.lines import Lines
from moot.cli.terminal.prompts.layout import Canvas, Line, View, draw, filter_line, speaks_unicode, terminal_size

_COOKED = termios.ECHO | termios.ICANON | termios.IEXTEN
_TRANSLATED = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
_FATAL_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Keyboard:
    """A context manager that leaves typed keys unread, without echoing or losing them. It restores the terminal's modes at its end.

    Ctrl+C and Ctrl+Z take effect immediately. `hide` is called before moot is suspended or ended by a signal, `show` after it is resumed.
    """

    def __init__(self) -> None:
        self.hide: Callable[[], object] = lambda: None
        self.show: Callable[[], object] = lambda: None
        self._descriptor = sys.stdin.fileno()
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Keyboard:
        self._before = termios.tcgetattr(self._descriptor)
        self._handle(signal.SIGTSTP, self._stop)
        for number in _FATAL_SIGNALS:
            self._handle(number, self._end)
        self._set_modes()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hand_over(self) -> None:
        """Hand over to the application, which from now on reads the keys, handles Ctrl+Z and erases the screen."""
        self.hide = self.show = lambda: None
        self._unhandle(signal.SIGTSTP)

    def release(self) -> None:
        """Restore the terminal and the signal handlers. A second call does nothing."""
        self._restore()
        self._before = None
        for number in tuple(self._handlers):
            self._unhandle(number)

    def _restore(self) -> None:
        if self._before is not None:
            with suppress(termios.error):  # a terminal that hung up
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def _set_modes(self) -> None:
        # like prompt-toolkit, except that Ctrl+C and Ctrl+Z still send signals: no one reads them as keys yet
        modes = termios.tcgetattr(self._descriptor)
        modes[0] &= ~_TRANSLATED
        modes[3] &= ~_COOKED
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSANOW, modes)

    def _handle(self, number: int, act: Callable[[int, FrameType | None], None]) -> None:
        if signal.getsignal(number) == signal.SIG_DFL:
            self._handlers[number] = signal.signal(number, act)

    def _unhandle(self, number: int) -> None:
        if number in self._handlers:
            signal.signal(number, self._handlers.pop(number))

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.hide()
        self._restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        # resumed
        signal.signal(number, self._stop)
        self._set_modes()
        self.show()

    def _end(self, number: int, _: FrameType | None) -> None:
        with suppress(OSError):  # a terminal that hung up
            self.hide()
        self.release()
        os.kill(os.getpid(), number)


CODES = {"title": "1", "head": "4", "selected": "7", "dim": "90", "key": "1"}
"""Terminal attributes of the styles. `dim` is used only with colour."""
_BEGIN, _END = "\x1b[?2004h\x1b[?1l\x1b[?7l", "\x1b[?7h\x1b[?2004l"
"""Bracketed paste, normal cursor keys and no line wrap, as prompt-toolkit sets them while it runs, and the sequence that resets them."""


class Frame:
    """The picker, drawn below the terminal's content, with the cursor after the filter. It is erased if moot is suspended or ends."""

    def __init__(self, view: View, keyboard: Keyboard, output: Lines) -> None:
        self._view = view
        self._keyboard = keyboard
        self._output = output
        self._shown = False
        keyboard.hide, keyboard.show = self.hide, self.show
        self.size = os.terminal_size((0, 0))
        """Terminal size for which the frame was drawn."""
        self.lines: Sequence[Line] = ()

    def show(self) -> None:
        """Draw the frame, unless the terminal has too few rows."""
        self.size = terminal_size()
        canvas = Canvas(self.size.columns, self.size.lines, speaks_unicode(), width)
        self.lines = draw(self._view, canvas)
        if len(self.lines) > self.size.lines:
            return
        text = "\r\n".join("".join(self._styled(style, piece) for style, piece in line) for line in self.lines)
        column = sum(width(piece) for _, piece in filter_line(self._view, canvas)[:2])
        to_filter = f"\r{_up(len(self.lines) - 2)}\x1b[{column}C"
        self._output.put(f"{_BEGIN}\r{text}{to_filter}", ends_line=True)
        self._shown = True

    def hide(self) -> None:
        """Erase the frame and return the cursor to where it was."""
        if self._shown:
            self._output.put(f"{self._top()}\x1b[J{_END}", ends_line=True)
        self._shown = False

    def _top(self) -> str:
        return f"\r{_up(1)}" if self._shown else ""

    def hand_over(self, lines: Sequence[Line], size: tuple[int, int]) -> str | None:
        """Hand the screen over to the application, which draws these lines at this size (columns, rows) and reads the keys.

        Return the sequence that moves the cursor to the first line, or None if exactly these lines are already on the screen.
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


def width(text: str) -> int:
    """Return the approximate number of terminal cells of a text. The exact table of widths takes too long to load for the first frame."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _up(lines: int) -> str:
    return f"\x1b[{lines}A" if lines > 0 else ""
