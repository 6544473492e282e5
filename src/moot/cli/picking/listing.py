"""The filtered list of items and its selection."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.picking.items import Item
from moot.cli.picking.matching import matcher, searched_text


class Listing:
    """A list under a filter. Items that match equally well keep their order.

    The filter is applied when the result is needed, so that a burst of keys costs one search.
    """

    def __init__(self, filter: str = "") -> None:
        self.filter = filter
        self.count = 0
        """Number of items regardless of the filter."""
        self.at = 0
        """Index of the selected item among the shown ones."""
        self._items: list[Item] = []
        self._texts: list[str] = []
        self._matches: list[tuple[int, int]] = []
        """Distance and index of each match."""
        self._searched = 0
        """Number of items searched so far."""

    def add(self, items: Sequence[Item]) -> None:
        """Append items. The selected item stays selected."""
        chosen = self.selected if self.at else None
        self._items += items
        self.count = len(self._items)
        if chosen is not None:
            self.select(chosen.key)

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
        """Move the selection, at most to either end."""
        self.at = max(0, min(self.at + by, len(self) - 1))

    def _shown(self) -> list[tuple[int, int]]:
        if self._searched == len(self._items):
            return self._matches
        self._texts += map(searched_text, self._items[len(self._texts) :])
        match, start = matcher(self.filter), self._searched
        self._matches += [(distance, at) for at, text in enumerate(self._texts[start:], start) if (distance := match(text)) is not None]
        self._matches.sort()
        self._searched = len(self._items)
        return self._matches
