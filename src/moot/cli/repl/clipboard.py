"""The clipboard: by the terminal itself (OSC 52), which also works from far away, and by a program of this machine."""

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

__all__ = ["MOST", "copied", "sequence"]

MOST = 100_000
"""Bytes that terminals take by OSC 52; more is cut off or ignored by many, so it is not tried."""
SECONDS = 2.0
_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)
"""Variable that must be set (empty = none) → a program that takes the text on its stdin."""

log = logging.getLogger("moot.cli")


def sequence(text: str) -> str:
    """What has the terminal take the text; empty when there is too much of it."""
    data = text.encode("utf-8", "replace")
    return f"\x1b]52;c;{base64.b64encode(data).decode()}\x07" if len(data) <= MOST else ""


async def copied(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The program that took the text; empty when none did."""
    for variable, argv in _PROGRAMS:
        if (variable and not environ.get(variable)) or shutil.which(argv[0], path=environ.get("PATH")) is None:
            continue
        try:
            if await _given(argv, text, environ):
                return argv[0]
        except MootError as error:
            log.warning("%s: %s", argv[0], error.message)
    return ""


async def _given(argv: tuple[str, ...], text: str, environ: Mapping[str, str]) -> bool:
    # these programs stay in the background and serve the clipboard, so only their own end is waited for, and nothing is read from them
    child = await spawn(argv, stdin="pipe", stdout="null", stderr="null", env=dict(environ))
    assert child.stdin is not None
    code: int | None = None
    try:
        with anyio.move_on_after(SECONDS), suppress(ConnectionError):  # one that does not listen has not taken it
            child.stdin.write(text.encode("utf-8", "replace"))
            await child.stdin.drain()
            child.stdin.write_eof()
            code = await child.wait()
    finally:
        if code != 0:
            await child.kill(0)
    return code == 0
