"""Prompts on the terminal for one line or a yes or no."""

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
    """Ask a yes/no question until it is answered. End of input counts as no."""
    while True:
        line = await ask_line(f"{question} [y/n]: ", output)
        if line is None or line.strip().lower() in _NO:
            return False
        if line.strip().lower() in _YES:
            return True


async def may_replace(path: Path, output: Output, *, force: bool) -> bool:
    """Return whether the file may be written, asking the user before an existing one is replaced.

    Raise UsageError if the file exists and the user cannot be asked.
    """
    if force or not await anyio.Path(path).is_file():
        return True
    if output.attended:
        return await confirm(f"{path} already exists. Replace it?", output)
    raise UsageError(f"File {str(path)!r} already exists.", fix="Use --force to replace it.")


async def ask_line(question: str, output: Output) -> str | None:
    """Return one line from the terminal without its line end, or None at the end of input. May be cancelled.

    Input typed before the question is discarded, and so are further lines of a paste.
    """
    descriptor = sys.stdin.fileno()
    discard_input(descriptor)
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


def discard_input(descriptor: int) -> None:
    """Discard unread terminal input."""
    try:
        termios.tcflush(descriptor, termios.TCIFLUSH)
    except termios.error:  # not a terminal
        return
