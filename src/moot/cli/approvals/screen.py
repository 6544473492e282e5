"""An approval prompt as a prompt-toolkit application."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, HSplit, Window
from prompt_toolkit.layout.processors import BeforeInput

from moot.cli.approvals.decide import Decision
from moot.cli.approvals.prompts import ALONE, QUIET, KeyGuard, Prompt
from moot.cli.console.output import Output
from moot.cli.terminal.prompts.application import InlineApplication, bind, fragments
from moot.cli.terminal.prompts.layout import flow
from moot.cli.terminal.prompts.rows import Row, Spans, render
from moot.cli.terminal.text import width_of
from moot.guard.terminal import visible_line, visible_lines

TYPED_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Viewport:
    """The visible part of a prompt."""

    width: int
    rows: int
    top: int
    """First visible line of the body."""
    left: int | None
    """Seconds until the approval expires; None if it never does."""
    typed: str
    """Typed text that is not an answer."""


def draw(prompt: Prompt, viewport: Viewport) -> tuple[list[Spans], int]:
    """Return the lines to display, and the index of the first visible line of the body."""
    width = max(viewport.width, 8)
    head, body = render([prompt.title], width), render(prompt.body(), width)
    foot = _foot(prompt, viewport, width)
    room = viewport.rows - len(head) - len(foot) - 1
    if len(body) <= room:
        return [*head, *body, *foot], 0
    room = max(1, room - len(_position(0, room, len(body), width)))
    top = min(viewport.top, len(body) - room)
    return [*head, *body[top : top + room], *_position(top, room, len(body), width), *foot], top


def _position(top: int, room: int, lines: int, width: int) -> list[Spans]:
    return render(
        [Row(f"lines {top + 1:{len(str(lines))}}-{top + room:{len(str(lines))}} of {lines}; PgDn: more", "warn", prose=True)], width
    )


def _foot(prompt: Prompt, viewport: Viewport, width: int) -> list[Spans]:
    rows: list[Row] = []
    if prompt.message:
        rows += [Row(line, "warn", indent=1, prose=True) for line in visible_lines(prompt.message)]
    if viewport.typed:
        shown = visible_line(viewport.typed)
        rows.append(Row(f"not an answer, kept for the composer: {shown[-TYPED_CHARACTERS:]}", "dim", indent=1))
    left = "" if viewport.left is None else f" · expires in {_countdown(viewport.left)}"
    if prompt.input is not None:
        more = " · Up/Down other patterns" if len(prompt.input.suggestions) > 1 else ""
        return render([*rows, Row(f"Enter confirm · Esc back{more}{left}", "dim", indent=1, prose=True)], width)
    return [
        *render(rows, width),
        *_keys(prompt.keys(), width),
        *render([Row(f"Esc decide later · Ctrl+C stop the run{left}", "dim", indent=1, prose=True)], width),
    ]


def _countdown(seconds: int) -> str:
    """Format the remaining time in minutes and seconds, or in hours only if it is long."""
    return f"{seconds // 60}:{seconds % 60:02}" if seconds < 6_000 else f"{seconds // 3600} h"


def _keys(keys: dict[str, str], width: int) -> list[Spans]:
    """Return lines such as `[y] yes  [n] no`, with as many keys on a line as fit."""
    lines: list[Spans] = []
    short: list[Spans] = []
    for key, words in keys.items():
        text = f" {words}" if words else ""
        if width_of(text) + 5 <= width:
            short.append([("", " "), ("key", f"[{key}]"), ("", f"{text} ")])
        else:
            lines += [*flow(short, width, width_of), *render([Row(f"[{key}]{text}", indent=1, prose=True)], width)]
            short = []
    return lines + flow(short, width, width_of)


TIMER_SECONDS = 0.02
"""Number of seconds to add to waits, because timers of the event loop may fire slightly early."""
POLL_SECONDS = 0.5
"""Number of seconds between two checks for expiry and for answers given elsewhere."""

Resolved = Callable[[], Awaitable[Decision | None]]
Perform = Callable[[], Awaitable[Decision | None]]


async def run(prompt: Prompt, output: Output, *, resolved: Resolved, perform: Perform, expires: Callable[[], int | None]) -> Decision:
    """Show the prompt until it is answered or `resolved` returns a decision. `perform` executes the prompt's pending action.

    `expires` returns the number of seconds left, or None if the approval never expires.
    Typed text that is not an answer is returned as the draft.
    """
    return await _Screen(prompt, output, resolved, perform, expires).run()


class _Screen:
    """The application that shows one prompt."""

    def __init__(self, prompt: Prompt, output: Output, resolved: Resolved, perform: Perform, expires: Callable[[], int | None]) -> None:
        self.prompt = prompt
        self.guard = KeyGuard(time.monotonic())
        self._resolved, self._perform, self._expires = resolved, perform, expires
        self._top = 0
        self._pressed = (0.0, 0.0)
        """Times of the last two key presses."""
        self._input_since = 0.0
        self._buffer = Buffer(multiline=False)
        typing = Condition(lambda: self.prompt.input is not None)
        self._body = Window(
            FormattedTextControl(self._text, focusable=True, show_cursor=False),
            dont_extend_height=True,
            wrap_lines=False,
            always_hide_cursor=True,
        )
        line = BufferControl(self._buffer, input_processors=[BeforeInput(lambda: self.prompt.input.label if self.prompt.input else "")])
        self._line = Window(line, wrap_lines=True, height=Dimension(min=1, max=6), dont_extend_height=True)
        content = HSplit([self._body, ConditionalContainer(self._line, typing)])
        self._inline: InlineApplication[Decision] = InlineApplication(content, _bindings(self, typing), colour=output.stdout_colour)
        self._inline.app.key_processor.before_key_press += self._note_key

    async def run(self) -> Decision:
        decision = await self._inline.run(self._watch, handle_sigint=False)
        return Decision(decision.answer, self.guard.typed, decision.outcome)

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(POLL_SECONDS)
            if (decision := await self._resolved()) is not None:
                self._inline.finish(decision)
            self._inline.app.invalidate()

    async def _choose(self) -> None:
        """Treat the last key as an answer if no other key was typed right after it."""
        await anyio.sleep(ALONE + TIMER_SECONDS)
        key = self.guard.confirmed(time.monotonic())
        if key is not None and key in set(self.prompt.keys()):
            self.prompt.message, before = "", self.prompt.title
            self.prompt.choose(key)
            if self.prompt.title != before:
                self.guard.restart(time.monotonic())
            await self._follow()

    async def _follow(self) -> None:
        """Execute the prompt's pending action."""
        self._sync_input()
        self._inline.app.invalidate()
        if self.prompt.pending is not None:
            decision = await self._perform()
            if decision is not None:
                self._inline.finish(decision)
            self.guard.restart(time.monotonic())
            self._inline.app.invalidate()

    def _sync_input(self) -> None:
        layout, line = self._inline.app.layout, self.prompt.input
        if line is None:
            layout.focus(self._body)
        else:
            self._input_since = time.monotonic()
            self._buffer.set_document(Document(line.text, len(line.text)), bypass_readonly=True)
            layout.focus(self._line)

    def stop(self) -> None:
        self._inline.finish(Decision(None, outcome="stop"))

    def insert(self, text: str) -> None:
        """Handle a key or a paste outside the text input."""
        self.guard.add(text, time.monotonic(), self.prompt.keys())
        self._inline.start(self._choose)

    def leave(self) -> None:
        """Leave the approval open. Ignore the key if the screen has just changed,
        because it may have been meant for what was shown before.
        """
        if time.monotonic() - self.guard.since >= QUIET:
            self._inline.finish(Decision(None, outcome="later"))

    def submit(self) -> None:
        """Accept the typed line, unless Enter followed the previous key so quickly that it must be part of a paste."""
        now = time.monotonic()
        if now - self._pressed[0] >= ALONE and now - self._input_since >= QUIET:
            self.prompt.submit(self._buffer.text)
            self.guard.restart(time.monotonic())
            self._inline.start(self._follow)

    def cancel_input(self) -> None:
        self.prompt.input = None
        self.guard.restart(time.monotonic())
        self._sync_input()

    def next_suggestion(self, by: int) -> None:
        """Replace the line with another of its suggestions."""
        suggestions = list(self.prompt.input.suggestions) if self.prompt.input else []
        if suggestions:
            at = suggestions.index(self._buffer.text) if self._buffer.text in suggestions else -by
            text = suggestions[(at + by) % len(suggestions)]
            self._buffer.set_document(Document(text, len(text)))

    def scroll(self, by: int) -> None:
        self._top = max(0, self._top + by)

    @property
    def page(self) -> int:
        return max(1, self._inline.output.get_size().rows // 2)

    def _note_key(self, _: object) -> None:
        self._pressed = (self._pressed[1], time.monotonic())

    def _text(self) -> StyleAndTextTuples:
        size = self._inline.output.get_size()
        rows = size.rows - (2 if self.prompt.input is not None else 0)
        lines, self._top = draw(self.prompt, Viewport(size.columns, rows, self._top, self._expires(), self.guard.typed))
        return fragments(lines)


def _bindings(screen: _Screen, typing: Condition) -> KeyBindings:
    keys = KeyBindings()

    def on(names: Sequence[str], act: Callable[[], None], *, when: Filter | None = None) -> None:
        bind(keys, names, act, when=when if when is not None else ~typing, eager=True)

    on(["c-c"], screen.stop)
    on(["escape", "c-d"], screen.leave)
    on(["up"], lambda: screen.scroll(-1))
    on(["down"], lambda: screen.scroll(1))
    on(["pageup"], lambda: screen.scroll(-screen.page))
    on(["pagedown"], lambda: screen.scroll(screen.page))
    on(["home"], lambda: screen.scroll(-(1 << 40)))
    on(["end"], lambda: screen.scroll(1 << 40))
    on(["enter", "c-j"], lambda: screen.insert(""))
    on(["backspace"], lambda: screen.guard.erase(time.monotonic()))
    on(["enter", "c-j"], screen.submit, when=typing)
    on(["escape", "c-c"], screen.cancel_input, when=typing)
    on(["up"], lambda: screen.next_suggestion(-1), when=typing)
    on(["down"], lambda: screen.next_suggestion(1), when=typing)

    @keys.add(Keys.Any, filter=~typing, eager=True)
    @keys.add(Keys.BracketedPaste, filter=~typing, eager=True)
    def _(event: KeyPressEvent) -> None:
        pasted = event.key_sequence[0].key == Keys.BracketedPaste
        screen.insert(event.data.replace("\r\n", "\n").replace("\r", "\n") if pasted else event.data if event.data.isprintable() else "")

    return keys
