"""A line from the person, of which no more than the first characters are seen: it may be a key."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from moot.cli.output import Output

__all__ = ["ask_unseen"]

_SEEN = 3
"""Characters up to which a text can be no key and is shown."""
_LONGEST_SHOWN = 24
_LONGEST = 4096
_ESCAPE_SECONDS = 0.05
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.|.)")
_ENDS, _ERASES, _CLEARS, _LEAVES = "\r\n", "\x7f\b", "\x15", "\x04"


async def ask_unseen(question: str, output: Output) -> str | None:
    """What was typed before Enter; None for Esc, or for Ctrl+D on an empty line. Cancellable; the terminal is as before afterwards."""
    descriptor = sys.stdin.fileno()
    ended: int | None = None
    text: str | None = None
    with _unseen(descriptor):
        async with anyio.create_task_group() as group:

            async def heed() -> None:
                nonlocal ended
                with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
                    async for number in signals:
                        ended = int(number)
                        group.cancel_scope.cancel()

            group.start_soon(heed)
            output.prompt(question)  # not before the keys go nowhere else: what is seen may be answered
            try:
                text = await _Line(descriptor, question, output).read()
            finally:
                output.say("")
            group.cancel_scope.cancel()
    if ended is not None:
        raise SystemExit(128 + ended)
    return text


class _Line:
    def __init__(self, descriptor: int, question: str, output: Output) -> None:
        self._descriptor, self._question, self._output = descriptor, question, output
        self._text = ""
        self._shown = ""

    async def read(self) -> str | None:
        while True:
            typed = await self._typed()
            if typed is None:
                raise SystemExit(128 + signal.SIGHUP)
            if typed == "\x1b" or (typed == _LEAVES and not self._text):
                return None
            for character in _SEQUENCE.sub("", typed):
                if character in _ENDS:
                    return self._text.strip()
                self._put(character)
            self._show()

    def _put(self, character: str) -> None:
        if character in _ERASES:
            self._text = self._text[:-1]
        elif character in _CLEARS:
            self._text = ""
        elif character.isprintable() and len(self._text) < _LONGEST:
            self._text += character

    async def _typed(self) -> str | None:
        """What was typed since; an Esc alone stays alone. None when the terminal is gone."""
        await anyio.wait_readable(self._descriptor)
        data = _read(self._descriptor)
        if data == b"\x1b":
            with anyio.move_on_after(_ESCAPE_SECONDS):
                await anyio.wait_readable(self._descriptor)
                data += _read(self._descriptor)
        return data.decode("utf-8", "ignore") if data else None

    def _show(self) -> None:
        text = self._text if len(self._text) <= _SEEN else "*" * min(len(self._text), _LONGEST_SHOWN)
        shown = "".join(character if " " <= character <= "~" else "?" for character in text)
        more = max(len(self._shown) - len(shown), 0)
        self._output.redraw(self._question + shown + " " * more + "\b" * more)
        self._shown = shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the terminal hung up
        return b""


@contextmanager
def _unseen(descriptor: int) -> Generator[None]:
    """A terminal that hands over each key and shows none; signals go on working, but for the one that would suspend us like this."""
    before = termios.tcgetattr(descriptor)
    changed = termios.tcgetattr(descriptor)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    changed[6] = [*changed[6]]
    changed[6][termios.VMIN], changed[6][termios.VTIME], changed[6][termios.VSUSP] = 1, 0, b"\0"
    termios.tcsetattr(descriptor, termios.TCSAFLUSH, changed)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
