"""The list as a prompt-toolkit application: below what is in the terminal already, and gone when it is over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import anyio
import anyio.lowlevel
from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from moot.cli.inline import application, bind, bind_usual, depth, fragments
from moot.cli.output import Output
from moot.cli.picking.drawing import Sheet, View, draw, one_line, rows_of, typed
from moot.cli.picking.feeding import Feed
from moot.cli.picking.frame import Frame, terminal_size
from moot.cli.picking.items import Choice, Picked
from moot.cli.picking.listing import Listing

LONGEST_FILTER = 200
_SEARCHED = 2000
"""Items among which the one to begin with is looked for."""

_PLAIN_STYLES = {"title": "bold", "head": "underline", "typed": "", "selected": "reverse", "dim": "", "key": "bold"}
_STYLES = _PLAIN_STYLES | {"dim": "fg:ansibrightblack"}


async def run(choice: Choice, output: Output, *, unicode: bool, frame: Frame | None = None) -> Picked | None:
    """Shows the list until something is picked; None when the person left. The terminal is theirs again either way.

    `frame` is what was drawn of it already: it stays as it is while nothing on it changes.
    """
    return await _Screen(choice, output, unicode=unicode).run(frame)


class _Paper(Vt100_Output):
    silent = False
    """Whether nothing is written: what would be is on the screen."""

    def flush(self) -> None:
        if self.silent:
            self._buffer = []
        super().flush()


class _Screen:
    """One picking: what is selected, typed and fetched."""

    def __init__(self, choice: Choice, output: Output, *, unicode: bool) -> None:
        self._choice = choice
        self._unicode = unicode
        self._scope = choice.scope % len(choice.scopes)
        self._feeds: dict[int, Feed] = {}
        self._menu = False
        self._top = 0
        self._filled = 0
        self._wanted = anyio.Event()
        colour = output.stdout_colour
        self._output = _Paper(sys.stdout, _size, default_color_depth=depth(colour), enable_bell=False)
        control = FormattedTextControl(self._text, focusable=True, show_cursor=True, get_cursor_position=self._cursor)
        layout = Layout(Window(control, dont_extend_height=True, wrap_lines=False, always_hide_cursor=False))
        self._app: Application[Picked | None] = application(layout, _bindings(self), _STYLES if colour else _PLAIN_STYLES, self._output)

    async def run(self, frame: Frame | None) -> Picked | None:
        result: Picked | None = None
        try:
            await self._start()
            if frame is not None:
                self._take_over(frame)
            async with anyio.create_task_group() as group:
                group.start_soon(self._fetch)
                result = await self._app.run_async()
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                for feed in self._feeds.values():
                    await feed.aclose()
        return result

    def _take_over(self, frame: Frame) -> None:
        size = self._output.get_size()
        to_top = frame.hand_over(draw(self._view(), self._sheet()), (size.columns, size.rows))
        if to_top is None:
            self._output.silent = True
            self._app.after_render += self._speak
        else:
            self._output.write_raw(to_top)  # in one write with what is drawn over it

    def _speak(self, _: object) -> None:
        self._output.silent = False

    # ── fetching ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _feed(self) -> Feed:
        if self._scope not in self._feeds:
            self._feeds[self._scope] = Feed(self._choice.scopes[self._scope].items, Listing())
        return self._feeds[self._scope]

    @property
    def _listing(self) -> Listing:
        return self._feed.listing

    async def _start(self) -> None:
        """The first page, as far as it takes to find the item to begin with."""
        self._listing.type(self._choice.filter)
        if not self._feed.ended:
            await self._feed.more()
        while not self._listing.select(self._choice.at) and self._choice.at and not self._feed.ended and self._listing.count < _SEARCHED:
            await self._feed.more()
        while self._choice.filter and not self._feed.ended and len(self._listing) < self._rows():
            await self._feed.more()

    async def _fetch(self) -> None:
        while True:
            if self._feed.wants(self._rows()):
                await self._feed.more()
                self._app.invalidate()
                await anyio.lowlevel.checkpoint()  # keys go first
            else:
                self._wanted = anyio.Event()
                await self._wanted.wait()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sheet(self) -> Sheet:
        size = self._output.get_size()
        return Sheet(size.columns, size.rows, self._unicode, _measure)

    def _view(self) -> View:
        return View(self._choice, self._scope, self._listing, self._feed.ended, self._menu, self._top, self._filled)

    def _rows(self) -> int:
        return rows_of(self._view(), self._sheet())

    def _text(self) -> StyleAndTextTuples:
        self._scroll()
        return fragments(draw(self._view(), self._sheet()))

    def _cursor(self) -> Point:
        return Point(sum(_measure(text) for _, text in typed(self._view(), self._sheet())[:2]), 1)

    def _scroll(self) -> None:
        rows = self._rows()
        last = max(0, len(self._listing) - rows)
        self._top = max(0, min(max(min(self._top, self._listing.at), self._listing.at - rows + 1), last))
        self._filled = max(self._filled, min(rows, len(self._listing)))

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def pick(self, action: str = "") -> None:
        """Ends with the selected one, if there is one."""
        item = self._listing.selected
        if item is not None and not self._app.is_done:
            self._app.exit(result=Picked(item, action, self._listing.filter, self._scope))

    def take(self, text: str) -> None:
        """Something typed or pasted: a letter of the menu while that is open, else more of the filter."""
        if self._menu:
            if text in self._choice.keys:
                self.pick(text)
            return
        typed_text = one_line(text) if len(text) > 1 else text
        self._type((self._listing.filter + typed_text)[:LONGEST_FILTER])

    def shorten(self, cut: Callable[[str], str]) -> None:
        """Less of the filter."""
        if not self._menu:
            self._type(cut(self._listing.filter))

    def move(self, by: int, *, pages: bool = False) -> None:
        self._listing.move(by * (self._rows() if pages else 1))
        self._wake()

    def open_menu(self, opened: bool) -> None:
        self._menu = opened and bool(self._choice.keys) and self._listing.selected is not None

    def next_scope(self, by: int) -> None:
        filter = self._listing.filter
        self._scope = (self._scope + by) % len(self._choice.scopes)
        self._top = 0
        self._menu = False
        self._type(filter)

    def back(self) -> None:
        """One step: the menu, the filter, the list."""
        if self._menu:
            self._menu = False
        elif self._listing.filter:
            self._type("")
        else:
            self.leave()

    def leave(self) -> None:
        if not self._app.is_done:
            self._app.exit(result=None)

    def _type(self, filter: str) -> None:
        if filter != self._listing.filter:
            self._listing.type(filter)
        self._wake()

    def _wake(self) -> None:
        self._wanted.set()

    @property
    def direct(self) -> dict[str, str]:
        """Keys that act at once, and the letters they stand for."""
        return {action.key: letter for letter, action in self._choice.keys.items() if action.key}


def _size() -> Size:
    columns, rows = terminal_size()
    return Size(rows, columns)


def _measure(text: str) -> int:
    return len(text) if text.isascii() else sum(map(get_cwidth, text))  # as the renderer does, character by character


def _bindings(screen: _Screen) -> KeyBindings:
    keys = KeyBindings()
    bind_usual(keys)
    on = partial(bind, keys)

    on(["enter", "c-j"], screen.pick)
    on(["up", "c-p"], lambda: screen.move(-1))
    on(["down", "c-n"], lambda: screen.move(1))
    on(["pageup"], lambda: screen.move(-1, pages=True))
    on(["pagedown"], lambda: screen.move(1, pages=True))
    on(["home"], lambda: screen.move(-(1 << 60)))
    on(["end"], lambda: screen.move(1 << 60))
    on(["right", "c-x"], lambda: screen.open_menu(True))
    on(["left"], lambda: screen.open_menu(False))
    on(["tab"], lambda: screen.next_scope(1))
    on(["s-tab"], lambda: screen.next_scope(-1))
    on(["backspace"], lambda: screen.shorten(lambda text: text[:-1]))
    on(["c-w"], lambda: screen.shorten(lambda text: text.rstrip().rpartition(" ")[0]))
    on(["c-u"], lambda: screen.shorten(lambda _: ""))
    on(["escape"], screen.back)
    on(["c-c", "c-d"], screen.leave)
    for key, letter in screen.direct.items():
        on([key], partial(screen.pick, letter))

    @keys.add(Keys.Any)
    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        if event.data.isprintable() or event.key_sequence[0].key == Keys.BracketedPaste:
            screen.take(event.data)

    return keys
