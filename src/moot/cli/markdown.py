"""Markdown styled for a terminal as it streams: what was written is never redrawn, so nothing flickers and the scrollback stays whole."""

from __future__ import annotations

import re

_RESET = "\x1b[0m"
_CODE = "\x1b[36m"
_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"

_HEADING = re.compile(r"#{1,6} ")
_TOKEN = re.compile(r"\*\*|`")


class Markdown:
    """Takes cleaned text in pieces and gives it back styled; of the text itself nothing but the marks of bold and code is left out."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._held = ""
        self._line_begins = True
        self._fenced = False
        self._inline = True
        self._style = ""

    def feed(self, text: str) -> str:
        """What can be shown by now: at most a few characters are held back, until their meaning is plain."""
        if not self._colour:
            return text
        text, self._held = self._held + text, ""
        shown: list[str] = []
        while text:
            line, newline, rest = text.partition("\n")
            if not newline and self._undecided(line):
                self._held = line
                break
            shown.append(self._piece(line, ended=bool(newline)))
            if newline:
                shown.append(self._close() + "\n")
                self._line_begins = True
            text = rest
        return "".join(shown)

    def end(self) -> str:
        """What was held back, and every style closed."""
        held, self._held = self._held, ""
        return (self._piece(held, ended=True) if held else "") + self._close()

    def _undecided(self, line: str) -> bool:
        return self._line_begins and len(line) < 4 and line.strip(" #`") == ""

    def _piece(self, text: str, *, ended: bool) -> str:
        opening = self._begin(text) if self._line_begins else ""
        if not self._inline:
            return opening + text
        if not ended and text.endswith("*") and not text.endswith("**"):
            text, self._held = text[:-1], "*"
        return opening + _TOKEN.sub(self._toggle, text)

    def _begin(self, line: str) -> str:
        """The style of a whole line, seen at its beginning; headings and code have no marks inside."""
        self._line_begins = False
        if line.lstrip().startswith("```"):
            self._fenced = not self._fenced
            self._style = _DIM
        elif self._fenced:
            self._style = _CODE
        elif _HEADING.match(line):
            self._style = _BOLD
        self._inline = not self._style
        return self._style

    def _toggle(self, match: re.Match[str]) -> str:
        wanted = _CODE if match[0] == "`" else _BOLD
        if self._style == wanted:
            self._style = ""
            return _RESET
        if self._style == _CODE:
            return match[0]  # stars in code are stars
        self._style = wanted
        return _RESET + wanted

    def _close(self) -> str:
        if not self._style:
            return ""
        self._style = ""
        return _RESET
