"""What a terminal can show, and untrusted text made fit for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moot.cli.screen.cells import cut
from moot.cli.screen.styles import Line, painted
from moot.guard.terminal import Cleaner

__all__ = ["NARROWEST", "Look", "Tidy", "tidy", "tidy_line"]

NARROWEST = 8
"""What is narrower is drawn for this many columns, and the terminal breaks the lines."""


@dataclass(frozen=True, slots=True)
class Look:
    """Of a terminal; `moot.cli.screen.terminal.look_of` finds it out."""

    width: int
    """Columns."""
    colour: bool
    """Without it no control sequence is written at all, and Markdown keeps its marks."""
    unicode: bool = True
    """Without it everything is ASCII: what can't be said in it is spelled out as an escape."""
    motion: bool = True
    """Without it nothing turns or counts."""
    light: bool = False
    """Dark letters on a light ground."""

    def resized(self, width: int) -> Look:
        """The same terminal with so many columns."""
        return replace(self, width=width)

    @property
    def columns(self) -> int:
        """What lines may take."""
        return max(self.width, NARROWEST)

    def painted(self, line: Line) -> str:
        """The line as this terminal takes it."""
        return painted(line, colour=self.colour, light=self.light)

    def cut(self, text: str, columns: int) -> str:
        """The text, or its beginning with a mark behind it, in at most so many columns."""
        return cut(text, columns, mark=self.sign("…", "..."))

    def sign(self, fancy: str, plain: str) -> str:
        """One of our own signs, or what stands for it in ASCII."""
        return fancy if self.unicode else plain


class Tidy:
    """Untrusted text in pieces, made fit: no control sequences (see `Cleaner`), and nothing that can't be encoded."""

    def __init__(self, look: Look) -> None:
        self._cleaner = Cleaner()
        self._unicode = look.unicode

    def feed(self, text: str) -> str:
        """What may be shown of this piece by now."""
        return self._encodable(self._cleaner.feed(text))

    def end(self) -> str:
        """What was still held back."""
        return self._encodable(self._cleaner.end())

    def _encodable(self, text: str) -> str:
        if self._unicode or text.isascii():
            return text
        return text.encode("ascii", "backslashreplace").decode()


def tidy(look: Look, text: str) -> str:
    """The whole of an untrusted text, made fit."""
    cleaner = Tidy(look)
    return cleaner.feed(text) + cleaner.end()


def tidy_line(look: Look, text: str) -> str:
    """Untrusted text made fit for one line: a newline or tab in it is a blank."""
    return " ".join(tidy(look, text).split())
