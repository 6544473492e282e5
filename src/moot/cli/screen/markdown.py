"""Untrusted Markdown as it streams: lines that are finished once and for all, and what the unfinished rest looks like now."""

from __future__ import annotations

from moot.cli.screen.blocks import Blocks
from moot.cli.screen.look import Look, Tidy
from moot.cli.screen.styles import Line

__all__ = ["Markdown", "drawn"]


class Markdown:
    """One text. What is finished never changes, whatever comes; it depends on the text alone, not on how it was cut into chunks."""

    def __init__(self, look: Look) -> None:
        self._tidy = Tidy(look)
        self._blocks = Blocks(look)

    def feed(self, text: str) -> None:
        """The next piece."""
        self._blocks.feed(self._tidy.feed(text))

    def end(self) -> None:
        """The text is over: all of it is finished."""
        self._blocks.feed(self._tidy.end())
        self._blocks.end()

    def resize(self, look: Look) -> None:
        """What is finished from here on fits another width."""
        self._blocks.resize(look)

    def take(self) -> list[Line]:
        """The lines that were finished since the last time."""
        taken, self._blocks.taken = self._blocks.taken, []
        return taken

    def live(self) -> list[Line]:
        """The unfinished rest, as it would be finished if the text ended here; a few lines, or one table."""
        twin = self._blocks.copy()
        twin.end()
        return twin.taken


def drawn(look: Look, text: str) -> list[Line]:
    """A whole text."""
    markdown = Markdown(look)
    markdown.feed(text)
    markdown.end()
    return markdown.take()
