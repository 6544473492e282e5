"""Copying to the clipboard: through the terminal (OSC 52), which also works over SSH, and with a program of this machine."""

from __future__ import annotations

import base64
import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress

import anyio

from moot.errors import MootError
from moot.guard.processes import spawn

__all__ = ["MAX_BYTES", "copy_with_program", "osc52"]

MAX_BYTES = 100_000
"""Largest text for OSC 52. Many terminals truncate or ignore more."""
COPY_SECONDS = 2.0
_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)
"""Variable that must be set (empty for none), and a program that reads the text from stdin."""

log = logging.getLogger("moot.cli")


def osc52(text: str) -> str:
    """Return the sequence that makes the terminal copy the text; empty if the text is too large."""
    data = text.encode("utf-8", "replace")
    return f"\x1b]52;c;{base64.b64encode(data).decode()}\x07" if len(data) <= MAX_BYTES else ""


async def copy_with_program(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Copy the text with the first program that works. Return its name; empty if none does."""
    for variable, argv in _PROGRAMS:
        if (variable and not environ.get(variable)) or shutil.which(argv[0], path=environ.get("PATH")) is None:
            continue
        try:
            if await _pipe_to(argv, text, environ):
                return argv[0]
        except MootError as error:
            log.warning("%s: %s", argv[0], error.message)
    return ""


async def _pipe_to(argv: tuple[str, ...], text: str, environ: Mapping[str, str]) -> bool:
    # these programs keep a child in the background that serves the clipboard: wait only for the program itself and read no output
    child = await spawn(argv, stdin="pipe", stdout="null", stderr="null", env=dict(environ))
    assert child.stdin is not None
    code: int | None = None
    try:
        with anyio.move_on_after(COPY_SECONDS), suppress(ConnectionError):  # a program that closes its stdin has failed
            child.stdin.write(text.encode("utf-8", "replace"))
            await child.stdin.drain()
            child.stdin.write_eof()
            code = await child.wait()
    finally:
        if code != 0:
            await child.kill(0)
    return code == 0
