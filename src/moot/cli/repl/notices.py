"""Notifications when the user is looking elsewhere (bell, terminal notification or a program), and a custom status line."""

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

__all__ = ["NotificationKind", "Notifier", "notification_text", "run_statusline"]

NotificationKind: TypeAlias = Literal["done", "waiting", "failed"]

LONG_SECONDS = 10.0
"""Notify after a longer wait even if the terminal does not report its focus."""
MAX_CHARACTERS = 200
NOTIFY_SECONDS = 5.0
"""Timeout of a notification program."""
STATUS_SECONDS = 2.0
STATUS_BYTES = 4_096

_TEXTS = {"done": "the answer is ready", "waiting": "approval needed", "failed": "the answer failed"}

log = logging.getLogger("moot.cli")


class Notifier:
    """Notifies as `ui.notify` says: off, bell, osc, or a program and its arguments; bell and osc by default."""

    def __init__(self, settings: Callable[[], Mapping[str, object]], write: Callable[[str], None]) -> None:
        self._settings, self._write = settings, write

    async def notify(self, kind: NotificationKind, about: str, *, seconds: float, focused: bool | None) -> None:
        """Notify the user if the terminal is not focused, or if it took long and the focus is unknown (None)."""
        if focused is not False and seconds < LONG_SECONDS:
            return
        text = notification_text(kind, about)
        setting = self._settings().get("notify")
        if isinstance(setting, list):
            await self._run([str(word) for word in cast("list[object]", setting)], text)
            return
        if setting in (None, True, "bell"):
            self._write("\a")
        if setting in (None, True, "osc"):
            self._write(f"\x1b]9;{text}\x07")

    def progress(self, active: bool) -> None:
        """Show in the terminal that a run is active, if `ui.progress` is set."""
        if self._settings().get("progress") is True:
            self._write("\x1b]9;4;3\x07" if active else "\x1b]9;4;0\x07")

    def title(self, title: str) -> None:
        """Set the window title, if `ui.title` is set."""
        if self._settings().get("title") is True:
            self._write(f"\x1b]2;{_plain(title)}\x07")

    async def _run(self, argv: Sequence[str], text: str) -> None:
        """Run the program with the text as last argument, without a shell."""
        try:
            if argv:
                await output([*argv, text], timeout=NOTIFY_SECONDS, limit=STATUS_BYTES)
        except MootError as error:
            log.warning("ui.notify: %s", error.message)


def notification_text(kind: NotificationKind, about: str) -> str:
    """Return the text of a notification: one line that is safe in a control sequence."""
    return _plain(f"moot: {_TEXTS[kind]}{f' · {about}' if about else ''}")


def _plain(text: str) -> str:
    return "".join(letter for letter in " ".join(clean(text).split()) if letter.isprintable() and letter != ";")[:MAX_CHARACTERS]


async def run_statusline(argv: Sequence[str], status: JsonObject) -> str:
    """Run a status line program with the status as JSON on stdin. Return its first line, or an error message if it fails."""
    try:
        child = await spawn(argv, stdin="pipe", stderr="null")
    except MootError as error:
        return f"ui.statusline: {error.message}"
    printed = b""
    timer = anyio.move_on_after(STATUS_SECONDS)
    try:
        with timer:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(status).encode())
            child.stdin.write_eof()
            while len(printed) < STATUS_BYTES and (piece := await child.stdout.read(STATUS_BYTES)):
                printed += piece
    except ConnectionError:  # the program does not read its input, which is fine
        pass
    finally:
        with anyio.CancelScope(shield=True):
            await child.kill(0)
    if timer.cancelled_caught:
        return f"ui.statusline: timed out after {STATUS_SECONDS:g} s"
    line = clean(printed[:STATUS_BYTES].decode("utf-8", "replace")).partition("\n")[0]
    return line.replace("\t", " ")
