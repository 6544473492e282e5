"""Programs and terminal features around the REPL: shell commands, clipboard, notifications and a custom status line."""

from __future__ import annotations

import base64
import codecs
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

import anyio

from moot.errors import MootError, UsageError
from moot.features.prompts.attachments import MAX_MEDIA, media_of
from moot.guard.processes import Child, output, spawn
from moot.guard.secrets import redact
from moot.guard.terminal import Cleaner, clean
from moot.types.canonical import JsonObject
from moot.types.message import Part, text_part

MAX_SHOWN = 100_000
"""Maximum number of characters of a command's output shown on the screen."""
MAX_SENT = 10_000
"""Maximum number of characters of a command's output sent to the model: this many from its start and this many from its end."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """The result of a shell command."""

    command: str
    code: int
    output: str

    def part(self) -> Part:
        """Return the result as a part of the next prompt."""
        ended = f"exit code {self.code}" if self.code >= 0 else f"killed by signal {-self.code}"
        return text_part(f"I ran this command myself ({ended}):\n\n$ {self.command}\n{redact(self.output, ())}")


class ShellCommand:
    """One shell command while it runs."""

    def __init__(self, command: str, directory: str, say: Callable[[str], None]) -> None:
        self._command, self._directory, self._say = command, directory, say
        self._child: Child | None = None
        self._head = self._tail = self._rest = ""
        self._shown = 0

    async def run(self) -> ShellResult:
        """Run the command to its end and print its output as it arrives. Raise Refused if it cannot be started."""
        # the user's own environment, like in a normal shell
        argv = [os.environ.get("SHELL") or "/bin/sh", "-c", self._command]
        child = self._child = await spawn(argv, cwd=Path(self._directory), env=dict(os.environ), stderr="stdout")
        assert child.stdout is not None
        cleaner, decoder = Cleaner(), codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while piece := await child.stdout.read(1 << 16):
                self._add(cleaner.feed(decoder.decode(piece)))
            code = await child.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await child.kill(0)
        self._add(cleaner.end())
        if self._rest and self._shown < MAX_SHOWN:
            self._say(self._rest)
        return ShellResult(self._command, code, self._head + (f"\n[… omitted …]\n{self._tail}" if self._tail else ""))

    def _add(self, text: str) -> None:
        room = MAX_SENT - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-MAX_SENT:]
        lines, newline, self._rest = (self._rest + text).rpartition("\n")
        self._rest = self._rest[-MAX_SHOWN:]
        if newline and self._shown < MAX_SHOWN:
            self._say(lines[: MAX_SHOWN - self._shown])
            self._shown += len(lines)
            if self._shown >= MAX_SHOWN:
                self._say("… output truncated")

    async def stop(self) -> None:
        """Kill the command and everything it started."""
        if self._child is not None:
            await self._child.kill()


MAX_BYTES = 100_000
"""Largest text in bytes that is copied with the OSC 52 sequence. Many terminals truncate or ignore longer texts."""
COPY_SECONDS = 2.0
_PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)
"""Programs that copy their stdin to the clipboard, each preceded by the environment variable that must be set for it (empty if none)."""

log = logging.getLogger("moot.cli")


def osc52(text: str) -> str:
    """Return the sequence that makes the terminal copy the text; empty if the text is too large."""
    data = text.encode("utf-8", "replace")
    return f"\x1b]52;c;{base64.b64encode(data).decode()}\x07" if len(data) <= MAX_BYTES else ""


async def copy_with_program(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Copy the text with the first program that works. Return the program's name, or an empty string if none works."""
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


PASTE_SECONDS = 5.0
"""Timeout for a program that reads the clipboard."""
_POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; $i = [Windows.Forms.Clipboard]::GetImage(); if (!$i) { exit 1 }; "
    "$m = New-Object IO.MemoryStream; $i.Save($m, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray())"
)


def _hex(data: bytes) -> bytes:
    """Decode AppleScript's notation of data: `«data PNGf89504E47…»`."""
    found = re.search(rb"data ....([0-9A-Fa-f]+)", data)
    return bytes.fromhex(found[1].decode()) if found else b""


_TYPES = ("image/png", "image/jpeg", "image/webp")
_READERS: Sequence[tuple[str, Sequence[tuple[str, ...]], Callable[[bytes], bytes]]] = (
    ("WAYLAND_DISPLAY", [("wl-paste", "--no-newline", "--type", one) for one in _TYPES], bytes),
    ("DISPLAY", [("xclip", "-selection", "clipboard", "-target", one, "-out") for one in _TYPES], bytes),
    ("", [("pngpaste", "-")], bytes),
    ("", [("osascript", "-e", "the clipboard as «class PNGf»")], _hex),
    ("WSL_DISTRO_NAME", [("powershell.exe", "-NoProfile", "-STA", "-Command", _POWERSHELL)], base64.b64decode),
)
"""Programs that write the image in the clipboard to their stdout: the environment variable that must be set (empty if none), the commands
to try, and the function that decodes their output."""


async def clipboard_image(environ: Mapping[str, str] = os.environ) -> tuple[bytes, str]:
    """Return the image in the clipboard and its media type. Raise UsageError if there is none, or no program that can read it."""
    tried = False
    for variable, commands, decode in _READERS:
        if (variable and not environ.get(variable)) or shutil.which(commands[0][0], path=environ.get("PATH")) is None:
            continue
        tried = True
        for argv in commands:
            found = await output(argv, env=dict(environ), timeout=PASTE_SECONDS, limit=2 * MAX_MEDIA)
            if found.code is None:
                raise UsageError(f"{argv[0]} did not return the image, or it is larger than {MAX_MEDIA >> 20} MiB.")
            try:
                data = decode(found.stdout) if found.code == 0 else b""
            except ValueError:  # not in the expected notation
                data = b""
            if len(data) > MAX_MEDIA:
                raise UsageError(f"The image in the clipboard is larger than {MAX_MEDIA >> 20} MiB.")
            if (media_type := media_of(data)).startswith("image/"):
                return data, media_type
    if tried:
        raise UsageError("The clipboard contains no image.", fix="To paste text, use your terminal's own shortcut, usually Ctrl+Shift+V.")
    raise UsageError(
        "No program found that reads images from the clipboard.",
        fix="Install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS), or save the image as a file and type @ and its name.",
    )


NotificationKind: TypeAlias = Literal["done", "waiting", "failed"]

LONG_SECONDS = 10.0
"""After a wait of this length, notify the user even if the terminal is focused or does not report its focus."""
MAX_CHARACTERS = 200
NOTIFY_SECONDS = 5.0
"""Timeout for a notification program."""
STATUS_SECONDS = 2.0
STATUS_BYTES = 4_096

_TEXTS = {"done": "the answer is ready", "waiting": "approval needed", "failed": "the answer failed"}


class Notifier:
    """Notifies the user as configured in `ui.notify`: off, bell, osc, or a program and its arguments. The default is bell and osc."""

    def __init__(self, settings: Callable[[], Mapping[str, object]], write: Callable[[str], None]) -> None:
        self._settings, self._write = settings, write

    async def notify(self, kind: NotificationKind, about: str, *, seconds: float, focused: bool | None) -> None:
        """Notify the user if the wait was long or the terminal is not focused. `focused` is None if the terminal does not report it."""
        if focused is not False and seconds < LONG_SECONDS:
            return
        text = notification_text(kind, about)
        setting = self._settings().get("notify")
        if isinstance(setting, list):
            argv = [str(word) for word in cast("list[object]", setting)]
            try:
                if argv:
                    await output([*argv, text], timeout=NOTIFY_SECONDS, limit=STATUS_BYTES)
            except MootError as error:
                log.warning("ui.notify: %s", error.message)
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
