"""`pick`: let the user choose one item from a list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from moot.cli.console.output import Output
from moot.cli.terminal.prompts.first_frame import Frame
from moot.cli.terminal.prompts.items import Action, Choice, Column, Items, Listing, PageLoader, Picked, Scope
from moot.cli.terminal.prompts.layout import moves_cursor, one_line, speaks_unicode
from moot.cli.terminal.prompts.plain import ask_line
from moot.errors import UsageError
from moot.plugins.registry import attribute

ROWS = 20
_NUMBER = re.compile(r"(?:([^\s\d])\s*)?([1-9][0-9]{0,8})")
_LEAVE = frozenset({"q", "quit", "exit"})


async def run(choice: Choice, output: Output) -> Picked | None:
    """Ask until an item is picked. Return None if the user leaves."""
    return await _NumberedPicker(choice, output).run()


class _NumberedPicker:
    """The state of one numbered list: scope, filter and first row."""

    def __init__(self, choice: Choice, output: Output) -> None:
        self._choice = choice
        self._output = output
        self._scope = choice.scope % len(choice.scopes)
        self._filter = choice.filter
        self._first = 0

    async def run(self) -> Picked | None:
        while True:
            loader = PageLoader(self._choice.scopes[self._scope].items, Listing(self._filter))
            try:
                outcome = await self._ask(loader)
            finally:
                await loader.aclose()
            if not isinstance(outcome, bool):
                return outcome
            if not outcome:
                return None

    async def _ask(self, loader: PageLoader) -> Picked | bool:
        """Return the picked item, True to show another list, or False to leave."""
        listing = loader.listing
        while True:
            listing.at = self._first + ROWS
            while loader.needs_more(ROWS):
                await loader.load()
            listing.at = 0
            self._print(listing, ended=loader.ended)
            line = await ask_line(self._question(more=len(listing) > self._first + ROWS), self._output)
            if line is None or line.strip().lower() in _LEAVE:
                return False
            if picked := self._picked(listing, line.strip()):
                return picked
            if self._changes_list(listing, line.strip()):
                return True

    def _picked(self, listing: Listing, line: str) -> Picked | None:
        match = _NUMBER.fullmatch(line)
        if match is None or (match[1] and match[1] not in self._choice.keys):
            return None
        found = listing.rows(int(match[2]) - 1, 1)
        if found:
            return Picked(found[0], match[1] or "", self._filter, self._scope)
        self._output.say(f"{match[2]} is not on the list.")
        return None

    def _changes_list(self, listing: Listing, line: str) -> bool:
        """Apply a typed filter or page command. Return True to show another list."""
        if not line:
            self._first = self._first + ROWS if len(listing) > self._first + ROWS else 0
        elif line == "/" or (line.startswith("/") and line[1:].strip()):
            self._filter, self._first = line[1:].strip(), 0
            listing.set_filter(self._filter)
        elif line.lower() == "tab" and len(self._choice.scopes) > 1:
            self._scope, self._first = (self._scope + 1) % len(self._choice.scopes), 0
            return True
        elif not _NUMBER.fullmatch(line):
            self._filter, self._first = line, 0
            listing.set_filter(line)
        return False

    def _print(self, listing: Listing, *, ended: bool) -> None:
        title = one_line(self._choice.scopes[self._scope].title)
        about = f" matching {one_line(self._filter)!r}" if self._filter else ""
        self._output.line(f"{title}{about} ({len(listing)}{'' if ended else '+'})")
        rows = listing.rows(self._first, ROWS)
        for number, item in enumerate(rows, self._first + 1):
            self._output.line(f"{number:4}  {'  '.join(text for cell in item.cells if (text := one_line(cell)))}")
        if not rows:
            self._output.line(f"  {'No matches' if self._filter else self._choice.empty}")

    def _question(self, *, more: bool) -> str:
        hints = [f"number = {self._choice.enter}"]
        if self._choice.keys:
            letter, action = next(iter(self._choice.keys.items()))
            others = ", ".join(f"{letter} {action.words}" for letter, action in list(self._choice.keys.items())[1:])
            hints.append(f"{letter} and number = {action.words}{f' ({others})' if others else ''}")
        hints += ["text = filter", *(["/ = all"] if self._filter else []), *(["Enter = more"] if more else [])]
        if len(self._choice.scopes) > 1:
            hints.append(f"tab = {one_line(self._choice.scopes[(self._scope + 1) % len(self._choice.scopes)].title)}")
        return f"{'; '.join(hints)}; q = close: "


_ONE_COLUMN = (Column(grows=True),)
_NO_KEYS: Mapping[str, Action] = {}
_APPLICATION = "moot.cli.terminal.prompts.picker:run"
"""Import path, loaded on first use, because prompt-toolkit is slow to import."""


async def pick(
    items: Items,
    *,
    title: str,
    output: Output,
    columns: Sequence[Column] = _ONE_COLUMN,
    keys: Mapping[str, Action] = _NO_KEYS,
    enter: str = "choose",
    scopes: Sequence[Scope] = (),
    filter: str = "",
    at: str = "",
    scope: int = 0,
    empty: str = "Nothing to choose from",
) -> Picked | None:
    """Show a list and return the picked item and how it was picked, or None if the user left.

    `keys` are additional actions on the selected item, by letter. `scopes` are more lists, which Tab switches to. `filter`, `at` (an item's
    key) and `scope` set the initial state: pass the values of the last `Picked` to return to the same place.
    Raise UsageError if there is no terminal.
    """
    return await choose(Choice((Scope(title, items), *scopes), tuple(columns), keys, enter, empty, filter, at, scope), output)


async def choose(choice: Choice, output: Output, frame: Frame | None = None) -> Picked | None:
    """Let the user pick from an existing `Choice`, like `pick`. `frame` is the first frame, if it is already on the screen."""
    if not output.attended:
        raise UsageError("Choosing from a list requires a terminal.", fix="Name the item on the command line.")
    if not moves_cursor():
        return await run(choice, output)
    return await attribute(_APPLICATION)(choice, output, unicode=speaks_unicode(), frame=frame)
