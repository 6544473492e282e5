"""The capabilities of the terminal, and cleaning of untrusted text before it is printed there."""

from __future__ import annotations

import codecs
import locale
import os
import shutil
from dataclasses import dataclass, replace

from moot.cli.console.output import Output
from moot.cli.terminal.text import Line, cut, painted
from moot.guard.terminal import Cleaner

NARROWEST = 8
"""Minimum width of lines, in columns. A narrower terminal wraps them."""


@dataclass(frozen=True, slots=True)
class Look:
    """The capabilities of a terminal, as detected by `look_of`."""

    width: int
    """Width in columns."""
    colour: bool
    """If False, no control sequences are written, and Markdown keeps its marks."""
    unicode: bool = True
    """If False, everything is written in ASCII, and other characters are escaped."""
    motion: bool = True
    """If False, nothing is animated."""
    light: bool = False
    """True for dark text on a light background."""

    def resized(self, width: int) -> Look:
        """Return the same look with another width."""
        return replace(self, width=width)

    @property
    def columns(self) -> int:
        """The maximum width of lines."""
        return max(self.width, NARROWEST)

    def painted(self, line: Line) -> str:
        """Return the line as text for this terminal."""
        return painted(line, colour=self.colour, light=self.light)

    def cut(self, text: str, columns: int) -> str:
        """Shorten the text to at most `columns` columns, with an ellipsis."""
        return cut(text, columns, mark=self.sign("…", "..."))

    def sign(self, fancy: str, plain: str) -> str:
        """Return the Unicode symbol, or its ASCII replacement if the terminal needs one."""
        return fancy if self.unicode else plain


class Tidy:
    """Cleans untrusted text that arrives in pieces.

    Control sequences are removed (see `Cleaner`). On a terminal without Unicode, non-ASCII characters are escaped.
    """

    def __init__(self, look: Look) -> None:
        self._cleaner = Cleaner()
        self._unicode = look.unicode

    def feed(self, text: str) -> str:
        """Return the part that can be shown so far."""
        return self._encodable(self._cleaner.feed(text))

    def end(self) -> str:
        """Return the rest."""
        return self._encodable(self._cleaner.end())

    def _encodable(self, text: str) -> str:
        if self._unicode or text.isascii():
            return text
        return text.encode("ascii", "backslashreplace").decode()


def tidy(look: Look, text: str) -> str:
    """Clean a complete untrusted text."""
    cleaner = Tidy(look)
    return cleaner.feed(text) + cleaner.end()


def tidy_line(look: Look, text: str) -> str:
    """Clean untrusted text for one line: whitespace becomes single spaces."""
    return " ".join(tidy(look, text).split())


def look_of(output: Output) -> Look:
    """Return the look of stdout. The settings `ui.theme` (auto, dark, light, no-color) and `ui.animations` take precedence."""
    settings = output.ui
    theme = settings.get("theme", "auto")
    dumb = os.environ.get("TERM", "") in ("dumb", "")
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]  # set by some terminals: `0;15` is black on white
    return Look(
        width=size_now()[0],
        colour=output.stdout_colour and theme != "no-color",
        unicode=_supports_unicode(),
        motion=not dumb and settings.get("animations", True) is not False,
        light=theme == "light" or (theme == "auto" and background in ("7", "15")),
    )


def size_now() -> tuple[int, int]:
    """Return the current columns and lines. COLUMNS and LINES take precedence; the default is 80 and 24."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _supports_unicode() -> bool:
    name = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG")
    try:  # Python uses UTF-8 in the locales C and POSIX, but the terminal may not
        return codecs.lookup(locale.getpreferredencoding(False)).name == "utf-8" and name not in ("C", "POSIX")
    except LookupError:
        return False
