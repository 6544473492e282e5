"""Small prompt-toolkit applications that draw below what the terminal shows and erase themselves when they end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Generic, TextIO, TypeAlias, TypeVar, cast

import anyio
from anyio.abc import TaskGroup
from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import AnyContainer, Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from moot.cli.terminal.prompts.layout import terminal_size

ESCAPE_SECONDS = 0.05
"""Timeout for the rest of a key sequence after Esc. A longer one makes the Esc key feel slow."""

_STYLES = {
    "bold": "bold",
    "title": "bold",
    "head": "underline",
    "key": "bold",
    "selected": "reverse",
    "marked": "reverse",
    "dim": "fg:ansibrightblack",
    "good": "fg:ansigreen",
    "warn": "fg:ansiyellow",
    "bad": "fg:ansired",
    "keyword": "fg:ansimagenta",
    "code": "fg:ansicyan",
    "link": "fg:ansiblue",
}
_COLOURLESS = {"dim": "", "good": "", "warn": "", "bad": "bold", "marked": "underline", "keyword": "", "code": "", "link": ""}

T = TypeVar("T")
Work: TypeAlias = Callable[[], Coroutine[object, object, None]]


class TerminalStream:
    """The text stream that prompt-toolkit writes to: stdout, unless it is muted."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.muted = False

    def write(self, text: str) -> None:
        """Write the text, encoded like stdout."""
        if not self.muted:
            sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))

    def flush(self) -> None:
        """Flush stdout."""
        sys.stdout.flush()

    def isatty(self) -> bool:
        """Return True, because this stream is used only on terminals."""
        return True

    def fileno(self) -> int:
        """Return stdout's file descriptor."""
        return sys.stdout.fileno()


class InlineApplication(Generic[T]):
    """A prompt-toolkit application with moot's styles, common keys and background work."""

    def __init__(self, content: AnyContainer, keys: KeyBindings, *, colour: bool) -> None:
        self.stream = TerminalStream()
        # don't request the cursor position: it is not needed, and a late answer would arrive as typed text
        self.output = Vt100_Output(
            cast("TextIO", self.stream),
            window_size,
            default_color_depth=ColorDepth.DEPTH_4_BIT if colour else ColorDepth.DEPTH_1_BIT,
            enable_bell=False,
            enable_cpr=False,
        )
        _bind_common(keys)
        self.app: Application[T] = Application(
            layout=Layout(content),
            key_bindings=keys,
            style=Style.from_dict(_STYLES if colour else _STYLES | _COLOURLESS),
            erase_when_done=True,
            full_screen=False,
            mouse_support=False,
            input=create_input(sys.stdin),
            output=self.output,
        )
        self.app.ttimeoutlen = self.app.timeoutlen = ESCAPE_SECONDS
        self._group: TaskGroup | None = None

    async def run(self, background: Work, *, handle_sigint: bool = True) -> T:
        """Show the application until `finish` is called. `background` runs meanwhile and is cancelled at the end."""
        result: list[T] = []
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(background)
            result.append(await self.app.run_async(handle_sigint=handle_sigint))
            group.cancel_scope.cancel()
        return result[0]

    def start(self, work: Work) -> None:
        """Run a task until the application ends."""
        if self._group is not None:
            self._group.start_soon(work)

    def finish(self, result: T) -> None:
        """End `run` with this result. Later calls do nothing."""
        if not self.app.is_done:
            self.app.exit(result=result)


def window_size() -> Size:
    """Return the rows and columns of the terminal on stdout."""
    columns, rows = terminal_size()
    return Size(rows, columns)


def fragments(lines: Iterable[Sequence[tuple[str, str]]]) -> StyleAndTextTuples:
    """Convert lines of (class, text) to prompt-toolkit's formatted text."""
    result: StyleAndTextTuples = []
    for number, line in enumerate(lines):
        if number:
            result.append(("", "\n"))
        result += [(f"class:{style}" if style else "", text) for style, text in line]
    return result


def bind(keys: KeyBindings, names: Sequence[str], action: Callable[[], None], *, when: Filter | bool = True, eager: bool = False) -> None:
    """Bind each of the keys to the action."""

    def handle(_: KeyPressEvent) -> None:
        action()

    for name in names:
        keys.add(name, filter=when, eager=eager)(handle)


def _bind_common(keys: KeyBindings) -> None:
    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
