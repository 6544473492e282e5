"""What writes to the terminal: whole frames in one go, and a region that shrinks as it grew."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer

__all__ = ["Pen", "Region"]

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Around what a terminal that knows synchronized updates shows at once; others pass it over."""


class Pen(Vt100_Output):
    """A terminal's output. It never asks where the cursor is: nothing that we draw needs to know, and the answer would be typed text."""

    def __init__(self, *, colour: bool) -> None:
        depth = ColorDepth.DEPTH_8_BIT if colour else ColorDepth.DEPTH_1_BIT
        measured = Vt100_Output.from_pty(sys.stdout)
        super().__init__(sys.stdout, measured.get_size, default_color_depth=depth, enable_cpr=False)
        self._frames = 0
        self.gone = False
        """Whether nothing can be written any more."""

    @contextmanager
    def frame(self) -> Generator[None]:
        """What is written in the block reaches the terminal in one write."""
        self._frames += 1
        try:
            yield
        finally:
            self._frames -= 1
            self.flush()

    def flush(self) -> None:
        if self._frames or not self._buffer:
            return
        self._buffer = [_BEGIN, *self._buffer, _END]
        try:
            super().flush()
        except OSError:  # the terminal is gone: there is nobody to show anything, and the signal that says so is on its way
            self.gone = True

    def size(self) -> Size:
        """Rows and columns as they are now."""
        return self.get_size()


class Region(Application[None]):
    """The few lines below the scrollback. It goes away when it ends; what was printed above stays."""

    def __init__(self, pen: Pen, **options: Any) -> None:
        super().__init__(output=pen, full_screen=False, erase_when_done=True, **options)
        self._pen = pen
        self.renderer = _Shrinking(self._merged_style, pen)

    def draw(self) -> None:
        """Brings what is below up to date."""
        with self._pen.frame():
            self._redraw()

    def print_above(self, text: str) -> None:
        """Writes text that is finished into the scrollback, once, and draws the region again below it."""
        with self._pen.frame():
            self.renderer.erase()
            self._pen.write_raw(text.replace("\n", "\r\n"))
            self._redraw()

    def _on_resize(self) -> None:
        with self._pen.frame():
            super()._on_resize()


class _Shrinking(Renderer):
    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        # the original never gets smaller until it is reset: blank lines would stay where a menu was
        if self.last_rendered_screen is not None and not is_done:
            size = self.output.get_size()
            wanted = layout.container.preferred_height(size.columns, size.rows).preferred
            if wanted < self.last_rendered_screen.height:
                self.erase()
        super().render(app, layout, is_done)
