"""The items that a picker shows, and their filtered list, loaded page by page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a picker."""

    key: str
    """Unique identifier."""
    cells: tuple[str, ...]
    """One text per column. Untrusted: control characters are removed when it is drawn, and markup is shown literally."""
    words: str = ""
    """Text that the filter searches, most important words first. If empty, the cells are searched."""
    group: str = ""
    """Heading above the first of the items with this group, which must be adjacent. A filter keeps the order of such items."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a picker."""

    title: str = ""
    width: int = 8
    """Width in terminal cells. For a column that grows, the minimum width."""
    rank: int = 0
    """Columns with the highest rank are hidden first on a narrow terminal. 0 means never."""
    grows: bool = False
    """True for the columns that share the rest of the line."""
    right: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """An additional action on the selected item, chosen by its letter in the menu."""

    words: str
    key: str = ""
    """Shortcut in prompt-toolkit's notation, such as `c-e` or `delete`; empty if the action is only in the menu."""


Pages: TypeAlias = Callable[[], AsyncGenerator[Sequence[Item], None]]


@dataclass(frozen=True, slots=True)
class Live:
    """A list that changes while it is shown."""

    snapshots: Pages
    """Generator of the whole list: once at the start, and again after each change."""


Items: TypeAlias = Sequence[Item] | Pages | Live
"""All items, a generator of pages, or a list that changes."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One of the lists that Tab switches between."""

    title: str
    items: Items


@dataclass(frozen=True, slots=True)
class Picked:
    """The picked item and how it was picked."""

    item: Item
    action: str = ""
    """The letter of the action; empty for Enter."""
    filter: str = ""
    scope: int = 0
    """Index of the list that contains the item."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Everything that a picker shows."""

    scopes: tuple[Scope, ...]
    columns: tuple[Column, ...] = (Column(grows=True),)
    keys: Mapping[str, Action] = field(default_factory=dict[str, Action])
    enter: str = "choose"
    """Label of the Enter key's action, shown in the footer."""
    empty: str = "Nothing to choose from"
    filter: str = ""
    at: str = ""
    """Key of the item that is selected at the start. If empty, the first item is selected."""
    scope: int = 0
    letters: bool = False
    """If True, letters are commands: those of `keys`, j and k to move, / to filter and q to close. Otherwise, they are typed into the
    filter."""


Matcher: TypeAlias = Callable[[str], int | None]
"""Return the distance of a text from the filter (0 is the best match), or None if the text does not match."""

SKIPPED = 2
"""Maximum number of letters skipped between two typed ones: `cnfg` finds `config`."""
_MIN_SKIPPING = 3
_INSIDE, _SKIPPING = 4, 9
"""Distances of a match inside a word and of a match with skipped letters. A match at the start of a word has a distance of at most 3."""


def searched_text(item: Item) -> str:
    """Return the text that the filter searches: one case-folded line with a space at both ends."""
    return fold(item.words or " ".join(item.cells))


def fold(text: str) -> str:
    """Normalize and case-fold the text, collapse white space, and add a space at both ends."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return f" {' '.join(text.casefold().split())} "


def matcher(query: str) -> Matcher:
    """Return a matcher for texts that contain all words of the filter, in any order."""
    words = fold(query).split()
    if not words:
        return lambda _: 0
    if len(words) == 1:
        return _match_word(words[0])
    return _match_words([_match_word(word) for word in words])


def _match_words(matchers: Sequence[Matcher]) -> Matcher:
    def distance(text: str) -> int | None:
        total = 0
        for match in matchers:
            if (found := match(text)) is None:
                return None
            total += found
        return total

    return distance


def _match_word(word: str) -> Matcher:
    start, whole = f" {word}", f" {word} "
    gap = f".{{0,{SKIPPED}}}?"
    skipping = re.compile(gap.join(map(re.escape, word))).search if len(word) >= _MIN_SKIPPING else None

    def distance(text: str) -> int | None:
        if word not in text:
            return _SKIPPING if skipping is not None and skipping(text) else None
        if start not in text:
            return _INSIDE
        return (0 if whole in text else 2) + (not text.startswith(start))

    return distance


class Listing:
    """A filtered list. Items that match equally well keep their order.

    The filter is applied only when its result is needed, so that several quick key presses cause one search.
    """

    def __init__(self, filter: str = "") -> None:
        self.filter = filter
        self.count = 0
        """Total number of items, regardless of the filter."""
        self.at = 0
        """Index of the selected item among the shown ones."""
        self._items: list[Item] = []
        self._texts: list[str] = []
        self._matches: list[tuple[int, int]] = []
        """Distance and index of each match."""
        self._searched = 0
        """Number of items searched so far."""
        self._grouped = False

    def add(self, items: Sequence[Item]) -> None:
        """Append items. The selected item stays selected."""
        chosen = self.selected if self.at else None
        self._items += items
        self.count = len(self._items)
        self._grouped = self._grouped or any(item.group for item in items)
        if chosen is not None:
            self.select(chosen.key)

    def replace(self, items: Sequence[Item]) -> bool:
        """Replace all items. The selected item stays selected if it still exists. Return False if nothing has changed."""
        if self._items == [*items]:
            return False
        chosen, at = self.selected, self.at
        self._items, self._texts, self._matches, self._searched = [], [], [], 0
        self.add(items)
        if chosen is None or not self.select(chosen.key):
            self.at = max(0, min(at, len(self) - 1))
        return True

    def set_filter(self, filter: str) -> None:
        """Set the filter and select the best match."""
        self.filter, self.at = filter, 0
        self._matches, self._searched = [], 0

    def __len__(self) -> int:
        return len(self._shown())

    def rows(self, start: int, number: int) -> list[Item]:
        """Return up to `number` shown items from index `start` on."""
        return [self._items[at] for _, at in self._shown()[start : start + number]]

    @property
    def groups(self) -> int:
        """Return the number of groups among the shown items."""
        return len({self._items[at].group for _, at in self._shown()} - {""}) if self._grouped else 0

    @property
    def selected(self) -> Item | None:
        shown = self._shown()
        return self._items[shown[min(self.at, len(shown) - 1)][1]] if shown else None

    def select(self, key: str) -> bool:
        """Select the item with this key. Return False if it is not shown."""
        for place, (_, at) in enumerate(self._shown()):
            if self._items[at].key == key:
                self.at = place
                return True
        return False

    def move(self, by: int) -> None:
        """Move the selection by this many items, but not beyond either end."""
        self.at = max(0, min(self.at + by, len(self) - 1))

    def _shown(self) -> list[tuple[int, int]]:
        if self._searched == len(self._items):
            return self._matches
        self._texts += map(searched_text, self._items[len(self._texts) :])
        match, start = matcher(self.filter), self._searched
        self._matches += [(distance, at) for at, text in enumerate(self._texts[start:], start) if (distance := match(text)) is not None]
        self._matches.sort(key=itemgetter(1) if self._grouped else None)
        self._searched = len(self._items)
        return self._matches


class PageLoader:
    """Loader of pages of items into a listing. Call `aclose` when it is no longer needed."""

    def __init__(self, items: Items, listing: Listing) -> None:
        self.listing = listing
        self.ended = False
        self.live = isinstance(items, Live)
        """True if `load` waits for the next change of the list."""
        self._pages: AsyncGenerator[Sequence[Item], None] | None = None
        if isinstance(items, Live):
            self._pages = items.snapshots()
        elif callable(items):
            self._pages = items()
        else:
            listing.add(items)
            self.ended = True

    def needs_more(self, rows: int) -> bool:
        """Return True if the selection is within two screens of the end, or if a filter must search all items."""
        return not self.ended and (bool(self.listing.filter.strip()) or len(self.listing) < self.listing.at + 2 * rows)

    async def load(self) -> bool:
        """Load the next page, or the list after its next change. Return False if there is nothing new to show."""
        if self._pages is None:
            return False
        page = await anext(self._pages, None)
        if page is None:
            self.ended, self.live = True, False
            return True
        if self.live:
            first, self.ended = not self.ended, True
            return self.listing.replace(page) or first
        self.listing.add(page)
        return True

    async def aclose(self) -> None:
        if self._pages is not None:
            await self._pages.aclose()
