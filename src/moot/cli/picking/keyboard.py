"""Typed keys, kept until the application reads them. The terminal is restored in any case."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

_COOKED = termios.ECHO | termios.ICANON | termios.IEXTEN
_TRANSLATED = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
_FATAL_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Keyboard:
    """A context manager in which keys are neither echoed nor lost; the terminal's modes are restored at its end.

    Ctrl+C and Ctrl+Z act at once. `hide` and `show` are called around a suspension, and `hide` before a signal ends the process.
    """

    def __init__(self) -> None:
        self.hide: Callable[[], object] = _nothing
        self.show: Callable[[], object] = _nothing
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
        """The application reads the keys, handles Ctrl+Z and erases the screen from here on."""
        self.hide = self.show = _nothing
        self._unhandle(signal.SIGTSTP)

    def release(self) -> None:
        """Restore the terminal and the signal handlers. A second call does nothing."""
        if self._before is not None:
            self._restore(self._before)
            self._before = None
        for number in tuple(self._handlers):
            self._unhandle(number)

    def _restore(self, before: list[Any]) -> None:
        with suppress(termios.error):  # a terminal that hung up
            termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

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
        if self._before is not None:
            self._restore(self._before)
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


def _nothing() -> None:
    return
