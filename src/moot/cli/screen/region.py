"""The live region: the lines at the bottom of the terminal that are redrawn."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from moot.cli.output import Output

__all__ = ["Region"]


class Region:
    """A few lines that are redrawn in place. They are removed before anything else is written, and return with the next frame.

    Finished text is written above them once, into the terminal's scrollback. The cursor moves up within these lines only.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._drawn: list[str] = []
        self._lock = threading.RLock()  # frames are drawn in a thread, other output comes from the event loop
        output.before = self.lift

    def draw(self, finished: str, live: Sequence[str]) -> None:
        """Draw a frame in one write: the finished text, which ends in a newline, and the live lines below it."""
        with self._lock:
            if not finished and list(live) == self._drawn:
                return
            shown = self._added(live) if not finished else None
            if shown is None:
                shown = finished + "\n".join(live)
                if self._drawn:  # overwrite first, then erase what is left, so that nothing flickers
                    shown = self._up() + shown.replace("\n", "\x1b[K\n") + "\x1b[J"
            self._output.put(shown, ends_line=not live)
            self._drawn = list(live)

    def lift(self) -> None:
        """Remove the live lines and leave the cursor where they began."""
        with self._lock:
            if self._drawn:
                erase = self._up() + "\x1b[J"
                self._drawn = []
                self._output.put(erase, ends_line=True)

    def forget(self) -> None:
        """Leave the live lines on the terminal, because another program has taken it over."""
        with self._lock:
            self._drawn = []

    def _up(self) -> str:
        """Return the sequence that moves the cursor to the first live line.

        A terminal that became narrower may have wrapped them into more rows. Moving up too far would overwrite finished text, so the
        smallest number is used; at worst a broken line remains.
        """
        rows = len(self._drawn)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") if rows else ""

    def _added(self, live: Sequence[str]) -> str | None:
        """Return the text to append to the last line, or None if more than that changed."""
        if not self._drawn or len(live) != len(self._drawn) or list(live[:-1]) != self._drawn[:-1]:
            return None
        return live[-1][len(self._drawn[-1]) :] if live[-1].startswith(self._drawn[-1]) else None
