"""The screen: the scrollback, and below it live lines, notes, the composer, a menu and the status line. Each frame is one write."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TextIO, TypeVar, cast

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle, Style, default_ui_style, merge_styles
from prompt_toolkit.utils import get_cwidth

from moot.cli.repl.composer import Composer
from moot.cli.terminal.prompts.application import TerminalStream, window_size
from moot.cli.terminal.prompts.rows import wrap_words

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Start and end of a synchronized update: terminals that support it show the text between them at once. Others ignore them."""
_RETRY_SECONDS = 0.02
"""Time between two attempts to write to a terminal that accepts nothing."""


class _QueuedStream(TerminalStream):
    """Writes to the terminal without blocking. Output that the terminal does not accept is queued in order."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = False
        """True if the terminal is closed."""
        self.pending = bytearray()
        self._descriptor: int | None = None
        with suppress(OSError):  # opened again, because a non-blocking stdout would also affect the shell
            self._descriptor = os.open(os.ttyname(sys.stdout.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)

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
        """Do nothing, because `write` does not buffer."""

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

    A terminal that accepts nothing for a while (a stopped pager, a dead connection) does not block the program. Await `caught_up` before
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


class LiveRegion(Application[None]):
    """The lines below the scrollback. The region is erased when it ends; text printed above it stays."""

    def __init__(self, writer: TerminalWriter, *, layout: Layout, keys: KeyBindingsBase, style: BaseStyle, vi: bool) -> None:
        super().__init__(
            layout=layout,
            key_bindings=keys,
            style=style,
            output=writer,
            full_screen=False,
            erase_when_done=True,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            cursor=ModalCursorShapeConfig() if vi else None,
        )
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


T = TypeVar("T")

log = logging.getLogger("moot.cli")

FRAME_SECONDS = 1 / 30
"""Minimum time between two frames."""
PAUSE_FACTOR = 8
"""Pause after a frame as a multiple of its CPU time, so that a slow machine draws less often."""
CLOSE_SECONDS = 2.0
"""Timeout at exit for a terminal that accepts nothing."""
COMPOSER_ROWS = 10
MENU_ROWS = 8

_STYLE = Style.from_dict(
    {"prompt": "bold", "status": "fg:ansibrightblack", "note": "fg:ansiyellow", "queue": "fg:ansicyan", "menu.current": "reverse"}
)


class Terminal:
    """The screen. Its content comes from callbacks."""

    def __init__(
        self,
        writer: TerminalWriter,
        composer: Composer,
        keys: KeyBindingsBase,
        *,
        finished: Callable[[], str],
        live: Callable[[int], Sequence[str]],
        notes: Callable[[], Sequence[tuple[str, str]]],
        status: Callable[[int], StyleAndTextTuples],
        hint: Callable[[], str],
        sign: str,
        vi: bool = False,
    ) -> None:
        """`hint` is shown in the empty composer. `vi` selects Vi keys for editing instead of Emacs keys."""
        self.writer = writer
        self.composer = composer
        self._finished, self._live, self._notes, self._status, self._sign = finished, live, notes, status, sign
        self._hint = hint
        self._dirty = anyio.Event()
        self._suspending: deque[Callable[[], Awaitable[None]]] = deque()
        self._left = False
        self._frames = 0
        self._slowest = 0.0
        """CPU seconds of the slowest frame."""
        self._lines: Sequence[str] = ()
        self.region = LiveRegion(writer, layout=Layout(self._layout()), keys=keys, style=_STYLE, vi=vi)
        # a timeout distinguishes the Esc key from the start of a key sequence
        self.region.ttimeoutlen, self.region.timeoutlen = 0.05, 0.3
        writer.fell_behind = self.touch

    async def run(self) -> None:
        """Run until `leave`. Work passed to `suspend_for` runs in between."""
        while not self._left and not self.writer.gone:
            self.writer.write_raw("\x1b[?1004h")  # report focus changes
            try:
                await self.region.run_async(pre_run=self.touch, handle_sigint=False, set_exception_handler=False)
            except EOFError:  # the terminal is closed
                self.writer.hang_up()
            finally:
                self.writer.write_now("\x1b[?1004l")
            while self._suspending:
                await self.writer.caught_up()
                await self._suspending.popleft()()
        self.flush()
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.writer.caught_up()
        self.writer.close()
        log.info("%d frames; slowest took %.1f ms of CPU", self._frames, self._slowest * 1000)

    def leave(self) -> None:
        """End `run`."""
        self._left = True
        self._stop()

    async def suspend_for(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work that needs the terminal for itself. The composer keeps its text."""
        done = anyio.Event()
        results: list[T] = []
        errors: list[BaseException] = []

        async def perform() -> None:
            try:
                results.append(await work())
            except Exception as error:  # noqa: BLE001  raised again below, in the caller
                errors.append(error)
            finally:
                done.set()

        self._suspending.append(perform)
        self.flush()
        self._stop()
        await done.wait()
        if errors:
            raise errors[0]
        return results[0]

    def _stop(self) -> None:
        if self.region.is_running and not self.region.is_done:
            self.region.exit()

    def touch(self) -> None:
        """Request a new frame."""
        self._dirty.set()

    async def draw(self) -> None:
        """Draw requested frames as fast as the machine allows. Never returns."""
        while True:
            await self._dirty.wait()
            await self.writer.caught_up()
            self._dirty = anyio.Event()
            start = time.thread_time()
            self.flush()
            elapsed = time.thread_time() - start
            self._slowest, self._frames = max(self._slowest, elapsed), self._frames + 1
            await anyio.sleep(max(FRAME_SECONDS, elapsed * PAUSE_FACTOR))

    def flush(self) -> None:
        """Draw one frame now."""
        if self.region.is_running and not self.region.is_done:
            self._lines = self._live(max(self.writer.size().rows // 3, 3))
            if text := self._finished():
                self.region.print_above(text)
            else:
                self.region.draw()
        elif self._left and (text := self._finished()):
            self.writer.write_now(text.replace("\n", "\r\n"))

    def _layout(self) -> HSplit:
        is_empty = Condition(lambda: not self.composer.text)
        composer = Window(
            BufferControl(self.composer, input_processors=[ConditionalProcessor(AfterInput(self._hint, "class:status"), is_empty)]),
            height=Dimension(min=1, max=COMPOSER_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=self._prefix,
        )
        return HSplit(
            [
                _lines(self._live_lines),
                _lines(self._note_lines),
                composer,
                _lines(self._menu),
                _lines(self._status_line),
            ],
            align=VerticalAlign.TOP,
        )

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("class:prompt", self._sign if line == 0 and wrapped == 0 else " " * get_cwidth(self._sign))]

    def _live_lines(self) -> StyleAndTextTuples:
        pieces: StyleAndTextTuples = []
        for line in self._lines:
            pieces += [*_fragments(line), ("", "\n")]
        return pieces[:-1]

    def _note_lines(self) -> StyleAndTextTuples:
        width = self.writer.size().columns - 1
        pieces: StyleAndTextTuples = []
        for style, text in self._notes():
            lines = [_fit(text, width)] if style == "class:queue" else wrap_words(text, width)
            pieces += [piece for line in lines for piece in ((style, line), ("", "\n"))]
        return pieces[:-1]

    def _status_line(self) -> StyleAndTextTuples:
        return self._status(self.writer.size().columns - 1)

    def _menu(self) -> StyleAndTextTuples:
        state = self.composer.complete_state
        if state is None or not state.completions:
            return []
        at = state.complete_index if state.complete_index is not None else 0 if self.composer.highlighted() is not None else -1
        return _menu(state, at, self.writer.size().columns - 1)


def _menu(state: CompletionState, at: int, width: int) -> StyleAndTextTuples:
    """Return the rows of the menu, with the one at index `at` highlighted; -1 highlights none."""
    first = max(0, min(at - MENU_ROWS + 1, len(state.completions) - MENU_ROWS))
    shown = state.completions[first : first + MENU_ROWS]
    column = min(max(get_cwidth(one.display_text) for one in shown), max(width // 2, 8))
    pieces: StyleAndTextTuples = []
    for number, one in enumerate(shown, first):
        label = _fit(one.display_text, column)
        line = _fit(f"  {label}{' ' * (column - get_cwidth(label))}  {one.display_meta_text}", width)
        pieces += [("class:menu.current" if number == at else "class:status", line), ("", "\n")]
    more = len(state.completions) - first - len(shown)
    return [*pieces, ("class:status", f"  {more} more")] if more > 0 else pieces[:-1]


def _lines(text: Callable[[], StyleAndTextTuples]) -> ConditionalContainer:
    """Return a window that is as high as its text. It is hidden while the text is empty."""

    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=False)
    return ConditionalContainer(window, Condition(lambda: bool(text())))


@lru_cache(maxsize=64)
def _fragments(line: str) -> tuple[tuple[str, str], ...]:
    return tuple((piece[0], piece[1]) for piece in to_formatted_text(ANSI(line)))


def _fit(text: str, width: int) -> str:
    if get_cwidth(text) <= width:
        return text
    while text and get_cwidth(text) > width - 1:
        text = text[:-1]
    return f"{text}…"
