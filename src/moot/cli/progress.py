"""Progress line for long operations."""

from __future__ import annotations

import time

from moot.cli.lines import Lines

PATIENCE = 1.0
"""Seconds before the first line, and between lines that cannot be redrawn."""
_REDRAWN = 0.1


class Progress:
    """One line on stderr that appears after a second and is erased at the end."""

    def __init__(self, output: Lines) -> None:
        self._output = output
        self._next = time.monotonic() + PATIENCE
        self._width = 0

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
