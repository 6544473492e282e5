"""Output to stdout (data) and stderr (messages), progress lines and error reports.

Control sequences are removed from text that goes to a terminal.
"""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import BinaryIO, Self, cast

from moot.errors import MootError
from moot.guard.secrets import redact
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject, dumps

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Lines:
    """Unbuffered output of a command that needs no event loop."""

    def __init__(self) -> None:
        self.stdout_terminal = sys.stdout.isatty()
        self.stderr_terminal = sys.stderr.isatty()
        self.attended = sys.stdin.isatty() and self.stdout_terminal
        """True if the user can be prompted."""
        self.stdout_colour = self.stdout_terminal and _wants_colour()
        self.stderr_colour = self.stderr_terminal and _wants_colour()
        self.ui: JsonObject = {}
        """The `ui` section of the configuration, empty until it is loaded."""
        self.before: Callable[[], object] = lambda: None
        """Called before each write. Code that redraws lines at the bottom of the screen uses this to erase them."""
        self._mid_line = False
        self.secrets: tuple[str, ...] = ()
        """Strings that are masked on stderr."""

    def hide(self, secrets: Sequence[str]) -> None:
        """Mask these strings in everything that is written to stderr from now on."""
        self.secrets = tuple(secrets)

    def data(self, text: str) -> None:
        """Write text unchanged. The caller must remove control sequences if it goes to a terminal."""
        self.before()
        _write(sys.stdout.buffer, text)
        if text:
            self._mid_line = not text.endswith("\n")

    def put(self, text: str, *, ends_line: bool) -> None:
        """Write a frame that contains moot's own control sequences. `ends_line` is True if it leaves the cursor at the start of a line."""
        _write(sys.stdout.buffer, text)
        self._mid_line = not ends_line

    def line(self, text: str) -> None:
        """Write one line of untrusted text."""
        self.data(self.fit(text) + "\n")

    def fit(self, text: str) -> str:
        """Make untrusted text safe for stdout: remove control sequences for a terminal, but not for a pipe."""
        return clean(text) if self.stdout_terminal else text

    def json(self, value: Json) -> None:
        """Write one JSON document on one line."""
        self.data(self.to_json(value) + "\n")

    def to_json(self, value: Json) -> str:
        """Return JSON text. On a terminal, escape every character that could control it."""
        text = dumps(value).decode()
        return screen_json(text) if self.stdout_terminal else text

    def say(self, text: str, style: str = "", *, exact: bool = False) -> None:
        """Write a line to stderr, without control sequences and secrets.

        If `exact` is True, write the text unchanged. Use this for content that the user must see in full to decide; the caller must have
        made its control characters visible.
        """
        self._begin_line()
        text = text if exact else redact(clean(text), self.secrets)
        code = _STYLES.get(style) if self.stderr_colour else None
        _write(sys.stderr.buffer, (f"\x1b[{code}m{text}\x1b[0m" if code else text) + "\n")

    def dim_text(self, text: str) -> None:
        """Write dimmed text without a line end to stderr, only on a terminal. The caller has removed control sequences."""
        self.before()
        if self.stderr_terminal and text:
            _write(sys.stderr.buffer, f"\x1b[2m{text}\x1b[0m" if self.stderr_colour else text)

    def prompt(self, text: str) -> None:
        """Write a question to stderr without a line end."""
        self._begin_line()
        _write(sys.stderr.buffer, clean(text))

    def _begin_line(self) -> None:
        self.before()
        if self._mid_line and self.stdout_terminal:
            self.data("\n")

    def redraw(self, line: str, *, ended: bool = False) -> None:
        """Replace the current line of stderr, which must be a terminal. If `ended` is True, keep the line and move to the next one."""
        _write(sys.stderr.buffer, "\n" if ended else f"\r{line}")

    def styled(self, text: str, style: str) -> str:
        """Return the text with a style if stdout has colour."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.stdout_colour else text


def _wants_colour() -> bool:
    """Return True to use colour on a terminal. NO_COLOR takes precedence over FORCE_COLOR, which overrides TERM."""
    if os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("FORCE_COLOR", "") not in ("", "0", "false") or os.environ.get("TERM", "") not in ("dumb", "")


def _write(file: object, text: str) -> None:
    binary = cast("BinaryIO", file)
    binary.write(text.encode("utf-8", "replace"))
    binary.flush()


def screen_json(text: str) -> str:
    """Escape every unprintable character of JSON text. Only valid for JSON, where such characters occur only in strings."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _unicode_escape(character) for character in text)


def _unicode_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


PATIENCE = 1.0
"""Number of seconds before progress is first shown, and between progress lines if they can't be redrawn."""
_REDRAWN = 0.1


def write_error(output: Lines, message: str, fix: str) -> None:
    """Write an error and its fix, if there is one, to stderr."""
    output.say(f"moot: {message}", "red")
    if fix:
        output.say(f"  {fix}")


def write_notes(output: Lines, notes: Sequence[str]) -> None:
    """Write the notes of a loaded configuration to stderr."""
    for note in notes:
        output.say(f"moot: {note}", "dim")


def write_done(output: Lines, as_json: bool, document: JsonObject, words: str) -> None:
    """Report what was done: print the document to stdout if `as_json` is True, otherwise the words to stderr."""
    if as_json:
        output.json(document)
    else:
        output.say(f"moot: {words}")


class Progress:
    """A progress line on stderr. It appears after a second and is erased at the end of the block."""

    def __init__(self, output: Lines) -> None:
        self._output = output
        self._next = time.monotonic() + PATIENCE
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, words: str) -> None:
        """Update the line. May be called often."""
        now = time.monotonic()
        if now < self._next:
            return
        if self._output.stderr_terminal:
            self._next = now + _REDRAWN
            self._output.redraw(f"{words:<{self._width}}")
            self._width = len(words)
        else:
            self._next = now + PATIENCE
            self._output.say(words)

    def close(self) -> None:
        """Erase the line."""
        if self._width:
            self._output.redraw(" " * self._width)
            self._output.redraw("")
            self._width = 0


INTERRUPTED = 130

_EXHAUSTED = {
    errno.EMFILE: ("Too many open files.", "Raise the limit, for example with 'ulimit -n 1024'."),
    errno.ENFILE: ("Too many files are open on this machine.", "Close some programs, or raise fs.file-max."),
    errno.ENOMEM: ("Not enough memory.", "Close some programs."),
    errno.ENOSPC: ("The disk is full.", "Free some space and try again."),
    errno.EDQUOT: ("The disk quota is exceeded.", "Free some space and try again."),
}
"""Message and fix for each error caused by an exhausted system resource rather than by a bug in moot."""


def report(error: BaseException, output: Lines, *, as_json: bool) -> int:
    """Print an error to stderr and, if `as_json` is True, as a JSON document to stdout. Return the exit code."""
    if isinstance(error, OSError) and (exhausted := _EXHAUSTED.get(error.errno or 0)):
        error = MootError(exhausted[0], fix=exhausted[1])
    if isinstance(error, MootError):
        write_error(output, error.message, error.fix)
        code, name, fix, message = error.exit_code, error.code, error.fix, error.message
    else:
        message = f"Unexpected {type(error).__name__}: {error}"
        write_error(output, message, "This is a bug in moot. Run 'moot doctor' to check the installation. MOOT_DEBUG=1 prints a traceback.")
        if debugging():
            output.say("".join(traceback.format_exception(error)))
        code, name, fix = 1, "internal", ""
    if as_json:
        output.json({"ok": False, "error": to_json(name, message, fix, retryable=getattr(error, "retryable", False) is True)})
    return code


def to_json(code: str, message: str, fix: str = "", *, retryable: bool = False) -> JsonObject:
    """Return an error as JSON for scripts."""
    return {"code": code, "message": message, "fix": fix, "retryable": retryable}


def innermost(error: BaseException) -> BaseException:
    """Return the first exception inside nested exception groups, which task groups raise. Return any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def debugging() -> bool:
    """Return True if MOOT_DEBUG=1 is set, which enables tracebacks."""
    return os.environ.get("MOOT_DEBUG") == "1"
