"""Output to the terminal: whole frames in one write, and a live region that shrinks with its content."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle, default_ui_style, merge_styles

from moot.cli.prompt.application import TerminalStream, window_size

__all__ = ["LiveRegion", "TerminalWriter"]

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized update: terminals that support it show everything in between at once, others ignore it."""
_RETRY_SECONDS = 0.02
"""Time between two attempts to write to a terminal that accepts nothing."""


class _QueuedStream(TerminalStream):
    """Writes to the terminal without blocking; what it does not accept is queued in order."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = False
        """True if the terminal is closed."""
        self.pending = bytearray()
        self._descriptor = _open_nonblocking()

    def write(self, text: str) -> None:
        if self.gone:
            return
        data = f"{_BEGIN}{text}{_END}".encode(sys.stdout.encoding or "utf-8", "replace")
        if self._descriptor is not None:
            self.pending += data
            self.push()
            return
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        except OSError:
            self.gone = True

    def flush(self) -> None:
        """Do nothing: `write` has no buffer of its own."""

    def push(self) -> None:
        """Write as much of the queue as the terminal accepts."""
        assert self._descriptor is not None
        try:
            while self.pending:
                del self.pending[: os.write(self._descriptor, self.pending)]
        except BlockingIOError:
            return
        except OSError:  # the terminal is closed; the signal that reports it will follow
            self.gone = True
            self.pending.clear()

    def close(self) -> None:
        """Close the descriptor and drop what is still queued."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self.gone = self.gone or bool(self.pending)


class TerminalWriter(Vt100_Output):
    """The terminal's output. It never asks for the cursor position, because the answer would arrive as typed text.

    A terminal that accepts nothing for a while (a stopped pager, a dead connection) does not block anyone. Await `caught_up` before
    drawing, so that at most one frame is queued.
    """

    def __init__(self, *, colour: bool) -> None:
        self._stream = _QueuedStream()
        depth = ColorDepth.DEPTH_8_BIT if colour else ColorDepth.DEPTH_1_BIT
        super().__init__(cast("TextIO", self._stream), window_size, default_color_depth=depth, enable_cpr=False)
        self._open_frames = 0
        self.fell_behind: Callable[[], None] = lambda: None
        """Called when the terminal did not accept a whole frame."""

    @property
    def gone(self) -> bool:
        """Return True if the terminal is closed."""
        return self._stream.gone

    def hang_up(self) -> None:
        """Treat the terminal as closed."""
        self._stream.gone = True

    async def caught_up(self) -> None:
        """Wait until the terminal has accepted everything or is closed."""
        while self._stream.pending:
            await anyio.sleep(_RETRY_SECONDS)
            self._stream.push()

    def close(self) -> None:
        """Close the terminal. Queued output is lost."""
        self._stream.close()

    @contextmanager
    def frame(self) -> Generator[None]:
        """Collect everything written in the block into one write."""
        self._open_frames += 1
        try:
            yield
        finally:
            self._open_frames -= 1
            self.flush()

    def flush(self) -> None:
        if self._open_frames:
            return
        super().flush()
        if self._stream.pending:
            self.fell_behind()

    def write_now(self, text: str) -> None:
        """Write raw text immediately."""
        self.write_raw(text)
        self.flush()

    def size(self) -> Size:
        """Return the current rows and columns."""
        return self.get_size()


def _open_nonblocking() -> int | None:
    """Open the terminal again, because a non-blocking stdout would also affect the shell. Return None if that is not possible."""
    with suppress(OSError):
        return os.open(os.ttyname(sys.stdout.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return None


class LiveRegion(Application[None]):
    """The lines below the scrollback. The region is erased when it ends; text printed above it stays."""

    def __init__(self, writer: TerminalWriter, *, layout: Layout, keys: KeyBindingsBase, style: BaseStyle) -> None:
        super().__init__(layout=layout, key_bindings=keys, style=style, output=writer, full_screen=False, erase_when_done=True)
        self._writer = writer
        self.renderer = _ShrinkingRenderer(merge_styles([default_ui_style(), style]), writer)

    def draw(self) -> None:
        """Draw the region now."""
        with self._writer.frame(), set_app(self):
            self.render_counter += 1  # controls cache their content by this number
            self.renderer.render(self, self.layout)
            self.layout.update_parents_relations()

    def print_above(self, text: str) -> None:
        """Print finished text into the scrollback and draw the region below it."""
        with self._writer.frame():
            self.renderer.erase()
            self._writer.write_raw(text.replace("\n", "\r\n"))
            self.draw()


class _ShrinkingRenderer(Renderer):
    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        # the base class never shrinks the region until it is reset, so a closed menu would leave blank lines
        if self.last_rendered_screen is not None and not is_done:
            size = self.output.get_size()
            wanted = layout.container.preferred_height(size.columns, size.rows).preferred
            if wanted < self.last_rendered_screen.height:
                self.erase()
        super().render(app, layout, is_done)
