"""What stands in a Markdown document by itself: flowing text, code, a table. Each gives out its lines as soon as they can't change."""

from __future__ import annotations

from typing import Protocol

from moot.cli.screen.cells import expanded
from moot.cli.screen.highlight import Highlighter
from moot.cli.screen.look import Look
from moot.cli.screen.spans import Spans
from moot.cli.screen.styles import DIM, Line, Style
from moot.cli.screen.wrapping import Wrap, wrapped_hard

__all__ = ["Code", "Flow", "Leaf"]


class Leaf(Protocol):
    """Finished lines gather in `taken`; whoever reads them empties it."""

    @property
    def taken(self) -> list[Line]: ...

    def copy(self) -> Leaf:
        """The same place, to be gone on with apart; without what is finished."""
        ...

    def end(self) -> None:
        """It is over: all of it is finished."""
        ...

    def resize(self, look: Look) -> None:
        """What is finished from here on fits another width."""
        ...


class Flow:
    """A paragraph, heading or list item: words that are wrapped, with a hanging indent."""

    def __init__(self, look: Look, first: Line, rest: Line, style: Style = 0) -> None:
        self._wrap = Wrap(look.columns, first, rest)
        self._spans = Spans(self._wrap, style, keep_marks=not look.colour)

    def copy(self) -> Flow:
        twin = Flow.__new__(Flow)
        twin._wrap = self._wrap.copy()
        twin._spans = self._spans.copy(twin._wrap)
        return twin

    def feed(self, text: str) -> None:
        """More of the text; a newline in it is a line break."""
        self._spans.feed(text)

    def end(self) -> None:
        self._spans.end()
        self._wrap.end()

    def resize(self, look: Look) -> None:
        self._wrap.resize(look.columns)

    @property
    def taken(self) -> list[Line]:
        return self._wrap.taken


class Code:
    """Lines of code, broken where they are too long."""

    def __init__(self, look: Look, indent: Line, language: str) -> None:
        self._look = look
        self._indent = indent
        self._highlighter = Highlighter(language)
        self.taken: list[Line] = []

    def copy(self) -> Code:
        twin = Code(self._look, self._indent, "")
        twin._highlighter = self._highlighter.copy()
        return twin

    def row(self, text: str) -> None:
        """The next line."""
        self.taken += wrapped_hard(self._highlighter.line(expanded(text)), self._look.columns, self._indent)

    def fence(self, text: str) -> None:
        """The fence itself, where there are no colours to tell code from words."""
        if not self._look.colour:
            self.taken += wrapped_hard([(text, DIM)], self._look.columns, self._indent)

    def end(self) -> None:
        return

    def resize(self, look: Look) -> None:
        self._look = look
