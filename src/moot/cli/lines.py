"""The two ways out: stdout for data, stderr for people. Whatever reaches a screen has lost its control sequences first."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, cast

from moot.guard.secrets import redact
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject, dumps

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Lines:
    """Where a command writes that needs no event loop. Nothing is buffered: what was written has left the process."""

    def __init__(self) -> None:
        self.stdout_terminal = sys.stdout.isatty()
        self.stderr_terminal = sys.stderr.isatty()
        self.attended = sys.stdin.isatty() and self.stdout_terminal
        """Whether a person can be asked."""
        self.stdout_colour = self.stdout_terminal and _wants_colour()
        self.stderr_colour = self.stderr_terminal and _wants_colour()
        self.ui: JsonObject = {}
        """`ui` of the configuration, once it was read."""
        self.before: Callable[[], object] = _nothing
        """Called before anything is written: whoever redraws lines at the bottom of the screen takes them away there."""
        self._mid_line = False
        self.secrets: tuple[str, ...] = ()
        """What `hide` was told."""

    def hide(self, secrets: Sequence[str]) -> None:
        """From here on none of these reaches stderr."""
        self.secrets = tuple(secrets)

    # ── stdout ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def data(self, text: str) -> None:
        """Writes text as it is: the caller has cleaned it if it goes to a screen."""
        self.before()
        _write(sys.stdout.buffer, text)
        if text:
            self._mid_line = not text.endswith("\n")

    def put(self, text: str, *, ends_line: bool) -> None:
        """Writes a frame with our own control sequences in it, which leaves the cursor at the beginning of a line or not."""
        _write(sys.stdout.buffer, text)
        self._mid_line = not ends_line

    def line(self, text: str) -> None:
        """One line of untrusted text."""
        self.data(self.fit(text) + "\n")

    def fit(self, text: str) -> str:
        """Untrusted text as stdout may have it: cleaned for a screen, as it is for a script."""
        return clean(text) if self.stdout_terminal else text

    def json(self, value: Json) -> None:
        """One JSON document on one line."""
        self.data(self.to_json(value) + "\n")

    def to_json(self, value: Json) -> str:
        """JSON text; for a screen with everything escaped that could act on it."""
        text = dumps(value).decode()
        return screen_json(text) if self.stdout_terminal else text

    # ── stderr ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, text: str, style: str = "", *, exact: bool = False) -> None:
        """A line for the person, without control sequences and secrets.

        `exact` is for what is decided about: there nothing is left out, and the caller has made every control character visible.
        """
        self._begin_line()
        text = text if exact else redact(clean(text), self.secrets)
        code = _STYLES.get(style) if self.stderr_colour else None
        _write(sys.stderr.buffer, (f"\x1b[{code}m{text}\x1b[0m" if code else text) + "\n")

    def mutter(self, text: str) -> None:
        """A piece of a line for the person, already cleaned; only on a terminal."""
        self.before()
        if self.stderr_terminal and text:
            _write(sys.stderr.buffer, f"\x1b[2m{text}\x1b[0m" if self.stderr_colour else text)

    def prompt(self, text: str) -> None:
        """A question, with the cursor left behind it."""
        self._begin_line()
        _write(sys.stderr.buffer, clean(text))

    def _begin_line(self) -> None:
        self.before()
        if self._mid_line and self.stdout_terminal:
            self.data("\n")

    def redraw(self, line: str, *, ended: bool = False) -> None:
        """Our own words over the last line of stderr, which is a terminal; `ended` leaves that line."""
        _write(sys.stderr.buffer, "\n" if ended else f"\r{line}")

    def styled(self, text: str, style: str) -> str:
        """The text with a style for stdout, where there is colour."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.stdout_colour else text


def close_quietly() -> None:
    """After a reader hung up: what is still buffered goes nowhere, and the interpreter's own flush at exit says nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _wants_colour() -> bool:
    """Whether a terminal may be sent colours; NO_COLOR has the last word, FORCE_COLOR is for a terminal that says it has none."""
    if os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("FORCE_COLOR", "") not in ("", "0", "false") or os.environ.get("TERM", "") not in ("dumb", "")


def _nothing() -> None:
    return


def _write(file: object, text: str) -> None:
    binary = cast("BinaryIO", file)
    binary.write(text.encode("utf-8", "replace"))
    binary.flush()


def screen_json(text: str) -> str:
    """JSON text with every character escaped that is not plainly printable: valid only for JSON, where such stand in strings alone."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _unicode_escape(character) for character in text)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
