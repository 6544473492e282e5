"""A line from the person at the terminal, and a plain yes or no."""

from __future__ import annotations

import os
import sys
import termios
from pathlib import Path

import anyio

from moot.cli.output import Output
from moot.errors import UsageError

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})


async def confirm(question: str, output: Output) -> bool:
    """A plain yes or no; the end of input is a no."""
    while True:
        line = await ask_line(f"{question} [y/n]: ", output)
        if line is None or line.strip().lower() in _NO:
            return False
        if line.strip().lower() in _YES:
            return True


async def may_replace(path: Path, output: Output, *, force: bool) -> bool:
    """Whether a file may be written there: where one is already, only if a person says so.

    Raises UsageError for such a file where nobody can be asked.
    """
    if force or not await anyio.Path(path).is_file():
        return True
    if output.attended:
        return await confirm(f"{path} is there already. Replace it?", output)
    raise UsageError(f"{str(path)!r} is there already", fix="--force replaces it")


async def ask_line(question: str, output: Output) -> str | None:
    """One line from the terminal without its end; None when there is no more. Cancellable.

    What was typed before the question, or comes with more lines in the same breath (a paste), is no answer to it and is thrown away.
    """
    descriptor = sys.stdin.fileno()
    forget_typed(descriptor)
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


def forget_typed(descriptor: int) -> None:
    """Throws away what a terminal holds that nobody has read."""
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    except termios.error:  # no terminal
        return
