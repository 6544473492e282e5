"""A prompt as a small prompt-toolkit application: below what is in the terminal already, and gone when it is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence

import anyio
from anyio.abc import TaskGroup
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.vt100 import Vt100_Output

from moot.cli.approving.drawing import Glance, draw
from moot.cli.approving.prompting import Prompt
from moot.cli.approving.quiet import ALONE, QUIET, Quiet
from moot.cli.approving.situations import Decided
from moot.cli.inline import application, bind, bind_usual, depth, fragments
from moot.cli.output import Output

TIMER_SECONDS = 0.02
"""What a timer of the loop may be early."""
LOOK_SECONDS = 0.5
"""Between two looks at the clock and at what others have answered."""

_STYLES = {
    "bold": "bold",
    "dim": "fg:ansibrightblack",
    "good": "fg:ansigreen",
    "warn": "fg:ansiyellow",
    "bad": "fg:ansired",
    "key": "bold",
    "marked": "reverse",
}
_PLAIN_STYLES = {"bold": "bold", "dim": "", "good": "", "warn": "", "bad": "bold", "key": "bold", "marked": "underline"}

Settled = Callable[[], Awaitable[Decided | None]]
Perform = Callable[[], Awaitable[Decided | None]]


async def run(prompt: Prompt, output: Output, *, settled: Settled, perform: Perform, expires: Callable[[], int | None]) -> Decided:
    """Shows the prompt until it is decided or `settled` says that it has been; `perform` does what the prompt wishes.

    `expires` is how many seconds are left, None = for ever. What was typed and is no answer is the result's draft.
    """
    return await _Screen(prompt, output, settled, perform, expires).run()


class _Screen:
    """One prompt on the terminal."""

    def __init__(self, prompt: Prompt, output: Output, settled: Settled, perform: Perform, expires: Callable[[], int | None]) -> None:
        self.prompt = prompt
        self.quiet = Quiet(time.monotonic())
        self._settled, self._perform, self._expires = settled, perform, expires
        self._group: TaskGroup | None = None
        self._top = 0
        self._pressed = (0.0, 0.0)
        """When the last two keys came."""
        self._line_since = 0.0
        colour = output.stdout_colour
        self._output = Vt100_Output.from_pty(sys.stdout, default_color_depth=depth(colour), enable_bell=False)
        self._buffer = Buffer(multiline=False)
        typing = Condition(lambda: self.prompt.line is not None)
        self._control = FormattedTextControl(self._text, focusable=True, show_cursor=False)
        line = BufferControl(self._buffer, input_processors=[BeforeInput(lambda: self.prompt.line.label if self.prompt.line else "")])
        self._line = Window(line, wrap_lines=True, height=Dimension(min=1, max=6), dont_extend_height=True)
        body = Window(self._control, dont_extend_height=True, wrap_lines=False, always_hide_cursor=True)
        layout = Layout(HSplit([body, ConditionalContainer(self._line, typing)]))
        self._app: Application[Decided] = application(layout, _bindings(self, typing), _STYLES if colour else _PLAIN_STYLES, self._output)
        self._app.key_processor.before_key_press += self._note_key

    async def run(self) -> Decided:
        decided = Decided(None, how="later")
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._watch)
            decided = await self._app.run_async(handle_sigint=False)
            group.cancel_scope.cancel()
        return Decided(decided.answer, self.quiet.typed, decided.how)

    # ── what happens meanwhile ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if (decided := await self._settled()) is not None:
                self.end(decided)
            self._app.invalidate()

    async def _fire(self) -> None:
        await anyio.sleep(ALONE + TIMER_SECONDS)
        key = self.quiet.due(time.monotonic())
        if key is not None and key in set(self.prompt.keys()):
            self.prompt.message, before = "", self.prompt.title
            self.prompt.choose(key)
            if self.prompt.title != before:
                self.quiet.restart(time.monotonic())
            await self._follow()

    async def _follow(self) -> None:
        """Does what the prompt wishes now."""
        self._sync_line()
        self._app.invalidate()
        if self.prompt.wish is not None:
            decided = await self._perform()
            if decided is not None:
                self.end(decided)
            self.quiet.restart(time.monotonic())
            self._app.invalidate()

    def _sync_line(self) -> None:
        line = self.prompt.line
        if line is None:
            self._app.layout.focus(self._control)
        else:
            self._line_since = time.monotonic()
            self._buffer.set_document(Document(line.text, len(line.text)), bypass_readonly=True)
            self._app.layout.focus(self._line)

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, decided: Decided) -> None:
        if not self._app.is_done:
            self._app.exit(result=decided)

    def take(self, text: str) -> None:
        """A key, or a paste, while keys are answers."""
        self.quiet.take(text, time.monotonic(), self.prompt.keys())
        self._start(self._fire)

    def leave(self, how: Decided) -> None:
        """Esc, which may have been meant for something else that was there a moment ago."""
        if time.monotonic() - self.quiet.since >= QUIET:
            self.end(how)

    def enter(self) -> None:
        """The line is finished, unless the Enter came with a paste or as fast as nobody types."""
        now = time.monotonic()
        if now - self._pressed[0] >= ALONE and now - self._line_since >= QUIET:
            text = self._buffer.text
            self.prompt.enter(text)
            self.quiet.restart(time.monotonic())
            self._start(self._follow)

    def leave_line(self) -> None:
        self.prompt.leave_line()
        self.quiet.restart(time.monotonic())
        self._sync_line()

    def choose_text(self, by: int) -> None:
        """The next of the texts that the line offers."""
        choices = list(self.prompt.line.choices) if self.prompt.line else []
        if choices:
            at = choices.index(self._buffer.text) if self._buffer.text in choices else -by
            text = choices[(at + by) % len(choices)]
            self._buffer.set_document(Document(text, len(text)))

    def scroll(self, by: int) -> None:
        self._top = max(0, self._top + by)

    @property
    def page(self) -> int:
        return max(1, self._output.get_size().rows // 2)

    def _note_key(self, _: object) -> None:
        self._pressed = (self._pressed[1], time.monotonic())

    def _start(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        if self._group is not None:
            self._group.start_soon(work)

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _text(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        rows = size.rows - (2 if self.prompt.line is not None else 0)
        lines, self._top = draw(self.prompt, Glance(size.columns, rows, self._top, self._expires(), self.quiet.typed))
        return fragments(lines)


def _bindings(screen: _Screen, typing: Condition) -> KeyBindings:
    keys = KeyBindings()
    bind_usual(keys)

    def on(names: Sequence[str], act: Callable[[], None], *, when: Filter | None = None) -> None:
        bind(keys, names, act, when=when if when is not None else ~typing, eager=True)

    on(["c-c"], lambda: screen.end(Decided(None, how="stop")))
    on(["escape", "c-d"], lambda: screen.leave(Decided(None, how="later")))
    on(["up"], lambda: screen.scroll(-1))
    on(["down"], lambda: screen.scroll(1))
    on(["pageup"], lambda: screen.scroll(-screen.page))
    on(["pagedown"], lambda: screen.scroll(screen.page))
    on(["home"], lambda: screen.scroll(-(1 << 40)))
    on(["end"], lambda: screen.scroll(1 << 40))
    on(["enter", "c-j"], lambda: screen.take(""))
    on(["backspace"], lambda: screen.quiet.forget(time.monotonic()))
    on(["enter", "c-j"], screen.enter, when=typing)
    on(["escape", "c-c"], screen.leave_line, when=typing)
    on(["up"], lambda: screen.choose_text(-1), when=typing)
    on(["down"], lambda: screen.choose_text(1), when=typing)

    @keys.add(Keys.Any, filter=~typing, eager=True)
    @keys.add(Keys.BracketedPaste, filter=~typing, eager=True)
    def _(event: KeyPressEvent) -> None:
        pasted = event.key_sequence[0].key == Keys.BracketedPaste
        screen.take(event.data.replace("\r\n", "\n").replace("\r", "\n") if pasted else event.data if event.data.isprintable() else "")

    return keys
