"""Plain questions in the terminal: a line of text, hidden text, a number from a list, yes or no."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from moot.cli.console.output import Output
from moot.errors import UsageError


async def confirm(question: str, output: Output) -> bool:
    """Ask a yes/no question. The end of input means no."""
    while True:
        line = await ask_line(f"{question} [y/n]: ", output)
        if line is None or line.strip().lower() in ("n", "no"):
            return False
        if line.strip().lower() in ("y", "yes"):
            return True


async def may_replace(path: Path, output: Output, *, force: bool) -> bool:
    """Return True if the file may be written. Ask before replacing an existing file.

    Raise UsageError if the file exists and there is no terminal to ask on.
    """
    if force or not await anyio.Path(path).is_file():
        return True
    if output.attended:
        return await confirm(f"{path} already exists. Replace it?", output)
    raise UsageError(f"{str(path)!r} already exists.", fix="Use --force to replace it.")


async def ask_line(question: str, output: Output) -> str | None:
    """Read one line from the terminal, without its newline. Return None at the end of input. Cancellable.

    Text typed before the question is discarded: it cannot be an answer.
    """
    descriptor = sys.stdin.fileno()
    discard_typed(descriptor)
    output.prompt(question)
    pieces = b""
    while not pieces.endswith(b"\n"):
        await anyio.wait_readable(descriptor)
        piece = os.read(descriptor, 4096)
        if not piece:
            output.say("")
            return pieces.decode("utf-8", "replace") or None
        pieces += piece
    return pieces.decode("utf-8", "replace").rstrip("\n")


def discard_typed(descriptor: int) -> None:
    """Discard unread terminal input."""
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    except termios.error:  # not a terminal
        return


_VISIBLE = 3
"""Maximum number of characters shown unmasked. A text this short cannot be an API key."""
_MAX_MASK = 24
_MAX_LENGTH = 4096
_ESCAPE_SECONDS = 0.05
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.|.)")
_ENTER, _BACKSPACE, _CTRL_U, _CTRL_D = "\r\n", "\x7f\b", "\x15", "\x04"


async def ask_hidden(question: str, output: Output) -> str | None:
    """Read one line without showing it. Return None for Esc, or for Ctrl+D on an empty line. Cancellable; restores the terminal's modes."""
    descriptor = sys.stdin.fileno()
    ended: int | None = None
    text: str | None = None
    with _no_echo(descriptor):
        async with anyio.create_task_group() as group:

            async def watch_signals() -> None:
                nonlocal ended
                with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
                    async for number in signals:
                        ended = int(number)
                        group.cancel_scope.cancel()

            group.start_soon(watch_signals)
            output.prompt(question)  # after echo is off, so that no key typed as an answer is shown
            try:
                text = await _HiddenLine(descriptor, question, output).read()
            finally:
                output.say("")
            group.cancel_scope.cancel()
    if ended is not None:
        raise SystemExit(128 + ended)
    return text


class _HiddenLine:
    """A line of hidden text while the user types it."""

    def __init__(self, descriptor: int, question: str, output: Output) -> None:
        self._descriptor, self._question, self._output = descriptor, question, output
        self._text = ""
        self._shown = ""

    async def read(self) -> str | None:
        while True:
            typed = await self._typed()
            if typed is None:
                raise SystemExit(128 + signal.SIGHUP)
            if typed == "\x1b" or (typed == _CTRL_D and not self._text):
                return None
            for character in _SEQUENCE.sub("", typed):
                if character in _ENTER:
                    return self._text.strip()
                if character in _BACKSPACE:
                    self._text = self._text[:-1]
                elif character in _CTRL_U:
                    self._text = ""
                elif character.isprintable() and len(self._text) < _MAX_LENGTH:
                    self._text += character
            self._show()

    async def _typed(self) -> str | None:
        """Return the next input, with an Esc sequence in one piece. Return None if the terminal is gone."""
        await anyio.wait_readable(self._descriptor)
        data = _read(self._descriptor)
        if data == b"\x1b":
            with anyio.move_on_after(_ESCAPE_SECONDS):
                await anyio.wait_readable(self._descriptor)
                data += _read(self._descriptor)
        return data.decode("utf-8", "ignore") if data else None

    def _show(self) -> None:
        text = self._text if len(self._text) <= _VISIBLE else "*" * min(len(self._text), _MAX_MASK)
        shown = "".join(character if " " <= character <= "~" else "?" for character in text)
        more = max(len(self._shown) - len(shown), 0)
        self._output.redraw(self._question + shown + " " * more + "\b" * more)
        self._shown = shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the terminal is gone
        return b""


@contextmanager
def _no_echo(descriptor: int) -> Generator[None]:
    """Switch the terminal to single keys without echo. Signals keep working, except for Ctrl+Z, which would leave these modes set."""
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
