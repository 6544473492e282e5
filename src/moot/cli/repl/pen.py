"""What writes to the terminal: whole frames in one go, and a region that shrinks as it grew."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer

__all__ = ["Pen", "Region"]

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Around what a terminal that knows synchronized updates shows at once; others pass it over."""


_AGAIN = 0.02
"""Seconds between two tries to write to a terminal that takes nothing."""


class Pen(Vt100_Output):
    """A terminal's output. It never asks where the cursor is: nothing that we draw needs to know, and the answer would be typed text.

    A terminal that takes nothing for a while (a stopped pager, a dead connection) holds nobody up: what it did not take is kept in order,
    and whoever draws asks for `behind` first, so that at most a frame is kept.
    """

    def __init__(self, *, colour: bool) -> None:
        depth = ColorDepth.DEPTH_8_BIT if colour else ColorDepth.DEPTH_1_BIT
        measured = Vt100_Output.from_pty(sys.stdout)
        super().__init__(sys.stdout, measured.get_size, default_color_depth=depth, enable_cpr=False)
        self._frames = 0
        self._descriptor = _unblocked()
        self._kept = bytearray()
        self.gone = False
        """Whether nothing can be written any more."""
        self.fell_behind: Callable[[], None] = lambda: None
        """Called when the terminal did not take all of a frame."""

    @property
    def behind(self) -> bool:
        """Whether there is something that the terminal has not taken yet."""
        return bool(self._kept)

    async def caught_up(self) -> None:
        """Returns once the terminal has taken everything, or is gone."""
        while self._kept:
            await anyio.sleep(_AGAIN)
            self._push()

    def close(self) -> None:
        """What the terminal has not taken by now is lost."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self.gone = self.gone or self.behind

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
        if self._frames or self.gone or not self._buffer:
            return
        self._buffer = [_BEGIN, *self._buffer, _END]
        try:
            if self._descriptor is None:
                super().flush()
                return
        except OSError:
            self._go()
            return
        self._kept += "".join(self._buffer).encode(self.encoding(), "replace")
        self._buffer = []
        self._push()
        if self._kept:
            self.fell_behind()

    def _push(self) -> None:
        assert self._descriptor is not None
        try:
            while self._kept:
                del self._kept[: os.write(self._descriptor, self._kept)]
        except BlockingIOError:
            return
        except OSError:
            self._go()

    def _go(self) -> None:
        # there is nobody to show anything, and the signal that says so is on its way
        self.gone = True
        self._kept.clear()

    def size(self) -> Size:
        """Rows and columns as they are now."""
        return self.get_size()


def _unblocked() -> int | None:
    """The terminal, opened once more: not waiting for it must not become a trait of what a shell shares with us. None where it can't be."""
    with suppress(OSError):
        return os.open(os.ttyname(sys.stdout.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return None


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
