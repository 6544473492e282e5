"""The screen: finished lines go into the scrollback once, and below stand what still moves, the composer and a status line."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import anyio
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from moot.cli.repl.composer import Composer
from moot.cli.repl.pen import Pen, Region

__all__ = ["Terminal"]

T = TypeVar("T")

log = logging.getLogger("moot.cli")

FRAME = 1 / 30
"""Seconds between two frames at least."""
REST = 8
"""Times as long as a frame took, in CPU, that nothing is drawn after it: a slow machine draws less often."""
PARTING = 2.0
"""Seconds that leaving waits for a terminal which takes nothing."""
COMPOSER_ROWS = 10
MENU_ROWS = 8

_STYLE = Style.from_dict(
    {"prompt": "bold", "status": "fg:ansibrightblack", "note": "fg:ansiyellow", "queue": "fg:ansicyan", "menu.current": "reverse"}
)


class Terminal:
    """Draws; what is on it comes from the functions that it is given."""

    def __init__(
        self,
        pen: Pen,
        composer: Composer,
        keys: KeyBindingsBase,
        *,
        finished: Callable[[], str],
        live: Callable[[int], Sequence[str]],
        notes: Callable[[], Sequence[tuple[str, str]]],
        status: Callable[[int], str],
        sign: str,
    ) -> None:
        self.pen = pen
        self.composer = composer
        self._finished, self._live, self._notes, self._status, self._sign = finished, live, notes, status, sign
        self._dirty = anyio.Event()
        self._asides: deque[Callable[[], Awaitable[None]]] = deque()
        self._left = False
        self._frames = 0
        self._slowest = 0.0
        """Seconds of CPU that the slowest frame took."""
        self._lines: Sequence[str] = ()
        self.region = Region(pen, layout=Layout(self._layout()), key_bindings=keys, style=_STYLE, include_default_pygments_style=False)
        # an Esc alone is told from one that begins a sequence by time
        self.region.ttimeoutlen, self.region.timeoutlen = 0.05, 0.3
        pen.fell_behind = self.touch

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Until `leave`. Whatever needs the whole terminal comes in between."""
        while not self._left and not self.pen.gone:
            self.pen.write_raw("\x1b[?1004h")  # tells when the window gains and loses the focus
            try:
                await self.region.run_async(pre_run=self.touch, handle_sigint=False, set_exception_handler=False)
            except EOFError:  # the terminal hung up
                self.pen.gone = True
            finally:
                self.pen.write_raw("\x1b[?1004l")
                self.pen.flush()
            while self._asides:
                await self.pen.caught_up()
                await self._asides.popleft()()
        self.flush()
        with anyio.move_on_after(PARTING):
            await self.pen.caught_up()
        self.pen.close()
        log.info("%d frames; the slowest took %.1f ms of CPU", self._frames, self._slowest * 1000)

    def leave(self) -> None:
        """Ends `run`."""
        self._left = True
        self._stop()

    async def aside(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs what needs the whole terminal while nothing else is drawn; what is being written is kept."""
        done = anyio.Event()
        results: list[T] = []
        errors: list[BaseException] = []

        async def perform() -> None:
            try:
                results.append(await work())
            except Exception as error:  # noqa: BLE001  raised again below, for who asked
                errors.append(error)
            finally:
                done.set()

        self._asides.append(perform)
        self.flush()
        self._stop()
        await done.wait()
        if errors:
            raise errors[0]
        return results[0]

    def _stop(self) -> None:
        if self.region.is_running and not self.region.is_done:
            self.region.exit()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def touch(self) -> None:
        """Something has changed: a frame is drawn soon."""
        self._dirty.set()

    async def draw(self) -> None:
        """Draws frames, as many as the machine has time for; never ends."""
        while True:
            await self._dirty.wait()
            await self.pen.caught_up()
            self._dirty = anyio.Event()
            began = time.thread_time()
            self.flush()
            took = time.thread_time() - began
            self._slowest, self._frames = max(self._slowest, took), self._frames + 1
            await anyio.sleep(max(FRAME, took * REST))

    def flush(self) -> None:
        """One frame, now."""
        if self.region.is_running and not self.region.is_done:
            self._lines = self._live(max(self.pen.size().rows // 3, 3))
            if text := self._finished():
                self.region.print_above(text)
            else:
                self.region.draw()
        elif self._left and (text := self._finished()):
            self.pen.write_raw(text.replace("\n", "\r\n"))
            self.pen.flush()

    # ── the layout ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _layout(self) -> HSplit:
        written = Window(
            BufferControl(self.composer),
            height=Dimension(min=1, max=COMPOSER_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=self._prefix,
        )
        return HSplit(
            [
                _lines(self._live_lines),
                _lines(self._note_lines),
                written,
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
        width = self.pen.size().columns - 1
        pieces: StyleAndTextTuples = []
        for style, text in self._notes():
            pieces += [(style, _fit(text, width)), ("", "\n")]
        return pieces[:-1]

    def _status_line(self) -> StyleAndTextTuples:
        text = self._status(self.pen.size().columns - 1)
        return [("class:status", text)] if text else []

    def _menu(self) -> StyleAndTextTuples:
        state = self.composer.complete_state
        return _menu(state, self.pen.size().columns - 1) if state is not None and state.completions else []


def _menu(state: CompletionState, width: int) -> StyleAndTextTuples:
    at = state.complete_index if state.complete_index is not None else -1
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
    """As many rows as the text has; none when there is no text."""
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
