"""Pages of numbered lines from a text of any size, with a hint for the model on how to read on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import TextIOWrapper

from moot.types.limits import TOOL_OUTPUT_CHARACTERS

__all__ = ["LINES", "Page", "read_page"]

LINES = 1000
LINE_CHARACTERS = 2000
"""Maximum length of a line, unless `start_character` points into it."""
PAGE_CHARACTERS = TOOL_OUTPUT_CHARACTERS - 1000
"""Maximum length of a page. The rest of the limit is for the closing note."""
SCANNED_CHARACTERS = 20_000_000
"""Number of characters after which lines are not counted. The note says if there are more."""
_PIECE = 1 << 16
_NOTE_CHARACTERS = 150


@dataclass(slots=True)
class Page:
    """The requested lines and their position in the text."""

    shown: list[str] = field(default_factory=list[str])
    first: int = 0
    last: int = 0
    """Numbers of the first and last line shown; 0 = none."""
    total: int = 0
    """Number of lines counted."""
    counted: bool = True
    """True if counting reached the end."""

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    @property
    def where(self) -> str:
        """The position, such as `lines 1-40 of 212; continue with start_line=41`. Empty if everything is shown."""
        if self.first == 1 and self.last == self.total and self.counted:
            return ""
        total = f"{self.total}" if self.counted else f"more than {self.total}"
        further = f"; continue with start_line={self.last + 1}" if self.last < self.total or not self.counted else ""
        return f"lines {self.first}-{self.last} of {total}{further}"


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    """From the first requested character, at most a page."""
    begin: int
    length: int


def read_page(reader: TextIOWrapper, start_line: int, line_count: int, start_character: int = 0) -> Page:
    """Return the lines starting at `start_line`, each after its number and a tab. The reader must split lines at LF only."""
    page, room = Page(), PAGE_CHARACTERS
    full = False
    for line in _lines(reader, start_line, start_character):
        page.total = line.number
        if line.number < start_line or line.number >= start_line + line_count or full:
            continue
        text = _cut(line, room if line.begin else min(room, LINE_CHARACTERS))
        full = len(text) + _NOTE_CHARACTERS > room and page.first > 0
        if not full:
            page.shown.append(f"{line.number}\t{text}")
            page.first, page.last = page.first or line.number, line.number
            room -= len(text) + len(str(line.number)) + 2
    page.counted = not reader.read(1)
    return page


def _cut(line: _Line, limit: int) -> str:
    if line.begin + len(line.text) >= line.length and len(line.text) <= limit:
        return line.text
    text = line.text[: max(limit - _NOTE_CHARACTERS, 1)]
    more = f"start_line={line.number} start_character={line.begin + len(text)}"
    return f"{text} … (line truncated, it has {line.length} characters; continue with {more})"


def _lines(reader: TextIOWrapper, start_line: int, start_character: int) -> Iterator[_Line]:
    number = scanned = 0
    while scanned < SCANNED_CHARACTERS:
        number += 1
        begin = start_character if number == start_line else 0
        kept, length, ended = "", 0, False
        while not ended and (piece := reader.readline(_PIECE)):
            ended = piece.endswith("\n")
            if len(kept) < PAGE_CHARACTERS:
                kept += piece[max(0, begin - length) :][: PAGE_CHARACTERS - len(kept)]
            length += len(piece) - (len(piece) - len(piece.rstrip("\r\n")) if ended else 0)
            scanned += len(piece)
            if scanned >= SCANNED_CHARACTERS and not ended:
                break
        if not ended and not length:
            return
        yield _Line(number, kept.rstrip("\r\n") if ended else kept, begin, length)
