"""The lines at the bottom of the terminal that are redrawn, and nothing above them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from moot.cli.output import Output

__all__ = ["Region"]


class Region:
    """At most a few lines; whoever else writes to the terminal has them taken away first, and they come back below with the next frame.

    What is finished goes above them once, into the terminal's own scrollback. The cursor moves up within these lines alone.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._drawn: list[str] = []
        self._lock = threading.RLock()  # frames are drawn off the event loop, and others write from it
        output.before = self.lift

    def draw(self, finished: str, live: Sequence[str]) -> None:
        """One frame, in one write: the finished text, ending in a newline, and below it the live lines."""
        with self._lock:
            if not finished and list(live) == self._drawn:
                return
            shown = self._added(live) if not finished else None
            if shown is None:
                shown = finished + "\n".join(live)
                if self._drawn:  # written over what stood there, and only then what is left of that erased: nothing flickers
                    shown = self._up() + shown.replace("\n", "\x1b[K\n") + "\x1b[J"
            self._output.put(shown, ends_line=not live)
            self._drawn = list(live)

    def lift(self) -> None:
        """Takes the live lines away; the cursor is where they began."""
        with self._lock:
            if self._drawn:
                erase = self._up() + "\x1b[J"
                self._drawn = []
                self._output.put(erase, ends_line=True)

    def forget(self) -> None:
        """Somebody else has the terminal now, and what stood there stays."""
        with self._lock:
            self._drawn = []

    def _up(self) -> str:
        """To where the live lines begin.

        A terminal that became narrower may have broken them into more rows, or may not: going up too far would eat what is finished, so
        the least is taken, and at worst a torn line stays.
        """
        rows = len(self._drawn)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") if rows else ""

    def _added(self, live: Sequence[str]) -> str | None:
        """The rest of the last line when nothing else changed: words that are only appended are only written."""
        if not self._drawn or len(live) != len(self._drawn) or list(live[:-1]) != self._drawn[:-1]:
            return None
        return live[-1][len(self._drawn[-1]) :] if live[-1].startswith(self._drawn[-1]) else None
