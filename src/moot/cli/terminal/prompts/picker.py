"""The picker as a prompt-toolkit application."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio
import anyio.lowlevel
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Window
from prompt_toolkit.utils import get_cwidth

from moot.cli.console.output import Output
from moot.cli.terminal.prompts.application import InlineApplication, bind, fragments
from moot.cli.terminal.prompts.first_frame import Frame
from moot.cli.terminal.prompts.items import Choice, Listing, PageLoader, Picked
from moot.cli.terminal.prompts.layout import Canvas, View, draw, filter_line, one_line, visible_rows

LONGEST_FILTER = 200
_SEARCHED = 2000
"""Maximum number of items loaded to find the one that is selected first."""


async def run(choice: Choice, output: Output, *, unicode: bool, frame: Frame | None = None) -> Picked | None:
    """Show the list until the user picks an item. Return None if they leave.

    `frame` is the first frame, if it is already on the screen. It is kept if it equals what the application would draw.
    """
    return await _Picker(choice, output, unicode=unicode).run(frame)


class _Picker:
    """The state of one picker: selection, filter and loaded pages."""

    def __init__(self, choice: Choice, output: Output, *, unicode: bool) -> None:
        self._choice = choice
        self._unicode = unicode
        self._scope = choice.scope % len(choice.scopes)
        self._loaders: dict[int, PageLoader] = {}
        self._menu = False
        self._typing = not choice.letters
        self._top = 0
        self._filled = 0
        self._wanted = anyio.Event()
        control = FormattedTextControl(self._text, focusable=True, show_cursor=True, get_cursor_position=self._cursor)
        window = Window(control, dont_extend_height=True, wrap_lines=False, always_hide_cursor=Condition(lambda: not self._typing))
        self._inline: InlineApplication[Picked | None] = InlineApplication(window, _bindings(self), colour=output.stdout_colour)

    async def run(self, frame: Frame | None) -> Picked | None:
        try:
            await self._load_first()
            if frame is not None:
                self._take_over(frame)
            return await self._inline.run(self._load)
        finally:
            with anyio.CancelScope(shield=True):
                for loader in self._loaders.values():
                    await loader.aclose()

    def _take_over(self, frame: Frame) -> None:
        inline = self._inline
        size = inline.output.get_size()
        to_top = frame.hand_over(draw(self._view(), self._canvas()), (size.columns, size.rows))
        if to_top is None:
            inline.stream.muted = True  # the first render is already on the screen
            inline.app.after_render += self._unmute
        else:
            inline.output.write_raw(to_top)  # written together with the first render

    def _unmute(self, _: object) -> None:
        self._inline.output.flush()
        self._inline.stream.muted = False

    # ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _loader(self) -> PageLoader:
        if self._scope not in self._loaders:
            self._loaders[self._scope] = PageLoader(self._choice.scopes[self._scope].items, Listing())
        return self._loaders[self._scope]

    @property
    def _listing(self) -> Listing:
        return self._loader.listing

    async def _load_first(self) -> None:
        """Load pages until the item to select first is found and a filtered screen is full."""
        self._listing.set_filter(self._choice.filter)
        loader, listing = self._loader, self._listing
        if not loader.ended:
            await loader.load()
        while not listing.select(self._choice.at) and self._choice.at and not loader.ended and listing.count < _SEARCHED:
            await loader.load()
        while self._choice.filter and not loader.ended and len(listing) < self._rows():
            await loader.load()

    async def _load(self) -> None:
        while True:
            if self._loader.live or self._loader.needs_more(self._rows()):
                if await self._loader.load():
                    self._inline.app.invalidate()
                await anyio.lowlevel.checkpoint()  # handle keys first
            else:
                self._wanted = anyio.Event()
                await self._wanted.wait()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _canvas(self) -> Canvas:
        size = self._inline.output.get_size()
        return Canvas(size.columns, size.rows, self._unicode, _measure)

    def _view(self) -> View:
        return View(self._choice, self._scope, self._listing, self._loader.ended, self._menu, self._typing, self._top, self._filled)

    def _rows(self) -> int:
        return visible_rows(self._view(), self._canvas())

    def _text(self) -> StyleAndTextTuples:
        rows = self._rows()
        last = max(0, len(self._listing) - rows)
        self._top = max(0, min(max(min(self._top, self._listing.at), self._listing.at - rows + 1), last))
        self._filled = max(self._filled, min(rows, len(self._listing)))
        return fragments(draw(self._view(), self._canvas()))

    def _cursor(self) -> Point:
        return Point(sum(_measure(text) for _, text in filter_line(self._view(), self._canvas())[:2]), 1)

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def pick(self, action: str = "") -> None:
        """End with the selected item, if there is one."""
        if self._choice.letters and self._typing:
            self._typing = False
            return
        item = self._listing.selected
        if item is not None:
            self._inline.finish(Picked(item, action, self._listing.filter, self._scope))

    def insert(self, text: str) -> None:
        """Handle typed or pasted text: a command, if letters are commands or the menu is open, otherwise part of the filter."""
        if self._menu or not self._typing:
            if text in self._choice.keys:
                self.pick(text)
            elif not self._menu and (command := self._commands.get(text)) is not None:
                command()
            return
        self._set_filter((self._listing.filter + (one_line(text) if len(text) > 1 else text))[:LONGEST_FILTER])

    def shorten(self, shortened: Callable[[str], str]) -> None:
        """Shorten the filter."""
        if not self._menu:
            self._set_filter(shortened(self._listing.filter))

    def move(self, by: int, *, pages: bool = False) -> None:
        self._listing.move(by * (self._rows() if pages else 1))
        self._wanted.set()

    @property
    def _commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands of letters in a list in which letters are commands."""
        return {"j": lambda: self.move(1), "k": lambda: self.move(-1), "/": self._start_typing, "q": self.leave}

    def _start_typing(self) -> None:
        self._typing = True

    def open_menu(self, opened: bool) -> None:
        self._menu = opened and not self._choice.letters and bool(self._choice.keys) and self._listing.selected is not None

    def next_scope(self, by: int) -> None:
        filter = self._listing.filter
        self._scope = (self._scope + by) % len(self._choice.scopes)
        self._top = 0
        self._menu = False
        self._set_filter(filter)

    def back(self) -> None:
        """Go back one step: close the menu, clear the filter, or leave."""
        if self._menu:
            self._menu = False
        elif self._listing.filter or (self._choice.letters and self._typing):
            self._set_filter("")
            self._typing = not self._choice.letters
        else:
            self.leave()

    def leave(self) -> None:
        self._inline.finish(None)

    def _set_filter(self, filter: str) -> None:
        if filter != self._listing.filter:
            self._listing.set_filter(filter)
        self._wanted.set()

    @property
    def shortcuts(self) -> dict[str, str]:
        """Return the menu letters of actions that have a shortcut, by shortcut."""
        return {action.key: letter for letter, action in self._choice.keys.items() if action.key}


def _measure(text: str) -> int:
    return len(text) if text.isascii() else sum(map(get_cwidth, text))  # character by character, like the renderer


def _bindings(picker: _Picker) -> KeyBindings:
    keys = KeyBindings()
    on = partial(bind, keys)

    on(["enter", "c-j"], picker.pick)
    on(["up", "c-p"], lambda: picker.move(-1))
    on(["down", "c-n"], lambda: picker.move(1))
    on(["pageup"], lambda: picker.move(-1, pages=True))
    on(["pagedown"], lambda: picker.move(1, pages=True))
    on(["home"], lambda: picker.move(-(1 << 60)))
    on(["end"], lambda: picker.move(1 << 60))
    on(["right", "c-x"], lambda: picker.open_menu(True))
    on(["left"], lambda: picker.open_menu(False))
    on(["tab"], lambda: picker.next_scope(1))
    on(["s-tab"], lambda: picker.next_scope(-1))
    on(["backspace"], lambda: picker.shorten(lambda text: text[:-1]))
    on(["c-w"], lambda: picker.shorten(lambda text: text.rstrip().rpartition(" ")[0]))
    on(["c-u"], lambda: picker.shorten(lambda _: ""))
    on(["escape"], picker.back)
    on(["c-c", "c-d"], picker.leave)
    for key, letter in picker.shortcuts.items():
        on([key], partial(picker.pick, letter))

    @keys.add(Keys.Any)
    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        if event.data.isprintable() or event.key_sequence[0].key == Keys.BracketedPaste:
            picker.insert(event.data)

    return keys
