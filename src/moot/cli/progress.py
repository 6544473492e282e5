"""A line of progress for what takes longer than a moment."""

from __future__ import annotations

import time

from moot.cli.lines import Lines

PATIENCE = 1.0
"""Seconds of silence before there is a line of progress, and between two where it can't be redrawn."""
_REDRAWN = 0.1


class Progress:
    """One line on stderr for what takes longer than a moment; gone again when it is over."""

    def __init__(self, output: Lines) -> None:
        self._output = output
        self._next = time.monotonic() + PATIENCE
        self._width = 0

    def show(self, words: str) -> None:
        """Called as often as one likes."""
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
        """Takes the line away."""
        if self._width:
            self._output.redraw(" " * self._width)
            self._output.redraw("")
            self._width = 0
