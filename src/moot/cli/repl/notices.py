"""Telling somebody who looks elsewhere: a bell, a notification of the terminal's, or a program of the person's own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, cast

import anyio

from moot.errors import MootError
from moot.guard.processes import output, spawn
from moot.guard.terminal import clean
from moot.types.canonical import JsonObject

__all__ = ["Notices", "Occasion", "drawn_by", "words_of"]

Occasion: TypeAlias = Literal["done", "waiting", "failed"]

LONG = 10.0
"""Seconds after which somebody may have gone to do something else."""
CHARACTERS = 200
SECONDS = 5.0
"""What a program of the person's own may take."""
STATUS_SECONDS = 2.0
STATUS_BYTES = 4_096

_WORDS = {"done": "the answer is there", "waiting": "a decision is wanted", "failed": "the answer failed"}

log = logging.getLogger("moot.cli")


class Notices:
    """`ui.notify` of the configuration: off, bell, osc, a list (a program and its arguments), or nothing for bell and osc."""

    def __init__(self, settings: Callable[[], Mapping[str, object]], write: Callable[[str], None]) -> None:
        self._settings, self._write = settings, write

    async def tell(self, occasion: Occasion, about: str, *, seconds: float, focused: bool | None) -> None:
        """Tells it when the person looks elsewhere, or it took long; focused None = nobody knows where they look."""
        if focused is not False and seconds < LONG:
            return
        text = words_of(occasion, about)
        wanted = self._settings().get("notify")
        if isinstance(wanted, list):
            await self._run([str(word) for word in cast("list[object]", wanted)], text)
            return
        if wanted in (None, True, "bell"):
            self._write("\a")
        if wanted in (None, True, "osc"):
            self._write(f"\x1b]9;{text}\x07")

    def progress(self, moves: bool) -> None:
        """Where `ui.progress` says so: the terminal shows that something goes on."""
        if self._settings().get("progress") is True:
            self._write("\x1b]9;4;3\x07" if moves else "\x1b]9;4;0\x07")

    def title(self, title: str) -> None:
        """Where `ui.title` says so: what the window is called."""
        if self._settings().get("title") is True:
            self._write(f"\x1b]2;{_plain(title)}\x07")

    async def _run(self, argv: Sequence[str], text: str) -> None:
        """The text is one argument more; no shell ever reads it."""
        try:
            if argv:
                await output([*argv, text], timeout=SECONDS, limit=STATUS_BYTES)
        except MootError as error:
            log.warning("ui.notify: %s", error.message)


def words_of(occasion: Occasion, about: str) -> str:
    """One line for a notification, fit for a terminal's control sequence."""
    return _plain(f"moot: {_WORDS[occasion]}{f' · {about}' if about else ''}")


def _plain(text: str) -> str:
    return "".join(letter for letter in " ".join(clean(text).split()) if letter.isprintable() and letter != ";")[:CHARACTERS]


async def drawn_by(argv: Sequence[str], standing: JsonObject) -> str:
    """The status line that a program makes of what stands in JSON on its stdin: its first line, cleaned; why not, when it failed."""
    try:
        child = await spawn(argv, stdin="pipe", stderr="null")
    except MootError as error:
        return f"ui.statusline: {error.message}"
    said = b""
    timer = anyio.move_on_after(STATUS_SECONDS)
    try:
        with timer:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(standing).encode())
            child.stdin.write_eof()
            while len(said) < STATUS_BYTES and (piece := await child.stdout.read(STATUS_BYTES)):
                said += piece
    except ConnectionError:  # it does not read what it is told, which is its own affair
        pass
    finally:
        with anyio.CancelScope(shield=True):
            await child.kill(0)
    if timer.cancelled_caught:
        return f"ui.statusline took longer than {STATUS_SECONDS:g} s"
    line = clean(said[:STATUS_BYTES].decode("utf-8", "replace")).partition("\n")[0]
    return line.replace("\t", " ")
