"""Plain questions in the terminal: a line of text, a number from a list, yes or no."""

from __future__ import annotations

import os
import re
import sys
import termios
from pathlib import Path

import anyio

from moot.cli.output import Output
from moot.errors import UsageError

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})


async def confirm(question: str, output: Output) -> bool:
    """Ask a yes/no question. The end of input means no."""
    while True:
        line = await ask_line(f"{question} [y/n]: ", output)
        if line is None or line.strip().lower() in _NO:
            return False
        if line.strip().lower() in _YES:
            return True


async def may_replace(path: Path, output: Output, *, force: bool) -> bool:
    """Return True if the file may be written. Ask before replacing an existing file.

    Raise UsageError if the file exists and there is no one to ask.
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


def parse_number(text: str, count: int) -> int | None:
    """Return the number from 1 to `count` that the text spells, or None."""
    text = text.strip()
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= count else None


def discard_typed(descriptor: int) -> None:
    """Discard unread terminal input."""
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    except termios.error:  # not a terminal
        return
