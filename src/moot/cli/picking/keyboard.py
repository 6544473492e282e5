"""The terminal between the start of a program and the moment somebody reads its keys."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

_UNREAD = termios.ECHO | termios.ICANON | termios.IEXTEN
_AS_TYPED = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Keyboard:
    """Within the block keys are kept for who reads them later, as they were typed and without an echo; then all is as it was.

    Ctrl+C and Ctrl+Z act at once. `hide` and `show` are called around a stop, and `hide` before a signal ends the process.
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
        for number in _ENDS:
            self._handle(number, self._end)
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hand_over(self) -> None:
        """Somebody reads the keys now, stops for Ctrl+Z and takes away what is drawn."""
        self.hide = self.show = _nothing
        self._unhandle(signal.SIGTSTP)

    def release(self) -> None:
        """The terminal as it was; a second time does nothing."""
        if self._before is not None:
            self._restore(self._before)
            self._before = None
        for number in tuple(self._handlers):
            self._unhandle(number)

    def _restore(self, before: list[Any]) -> None:
        with suppress(termios.error):  # a terminal that hung up
            termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def _hold(self) -> None:
        # as prompt-toolkit will have it, but for the keys that send signals: nobody else would heed them meanwhile
        held = termios.tcgetattr(self._descriptor)
        held[0] &= ~_AS_TYPED
        held[3] &= ~_UNREAD
        held[6][termios.VMIN], held[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSANOW, held)

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
        # going on again
        signal.signal(number, self._stop)
        self._hold()
        self.show()

    def _end(self, number: int, _: FrameType | None) -> None:
        with suppress(OSError):  # a terminal that hung up
            self.hide()
        self.release()
        os.kill(os.getpid(), number)


def _nothing() -> None:
    return
