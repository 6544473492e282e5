"""Which items are shown, in what order, and which one is selected."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.picking.items import Item
from moot.cli.picking.matching import haystack, judge


class Listing:
    """One list under a filter. Items keep the order they came in among those that fit equally well.

    What was typed is looked up when the result is needed, so that a burst of keys costs one look-up.
    """

    def __init__(self, filter: str = "") -> None:
        self.filter = filter
        self.count = 0
        """How many items there are, whatever is typed."""
        self.at = 0
        """The selected one among those shown."""
        self._items: list[Item] = []
        self._hays: list[str] = []
        self._hits: list[tuple[int, int]] = []
        self._judged = 0
        """How many of the items `_hits` knows."""

    def add(self, items: Sequence[Item]) -> None:
        """More of them, behind the others. What the person selected stays selected."""
        chosen = self.selected if self.at else None
        self._items += items
        self.count = len(self._items)
        if chosen is not None:
            self.select(chosen.key)

    def type(self, filter: str) -> None:
        """Another filter; the selection goes to the best one."""
        self.filter, self.at = filter, 0
        self._hits, self._judged = [], 0

    def __len__(self) -> int:
        return len(self._shown())

    def rows(self, start: int, number: int) -> list[Item]:
        """The shown ones from a place on."""
        return [self._items[at] for _, at in self._shown()[start : start + number]]

    @property
    def selected(self) -> Item | None:
        shown = self._shown()
        return self._items[shown[min(self.at, len(shown) - 1)][1]] if shown else None

    def select(self, key: str) -> bool:
        """Puts the selection on that item; False when it is not shown."""
        for place, (_, at) in enumerate(self._shown()):
            if self._items[at].key == key:
                self.at = place
                return True
        return False

    def move(self, by: int) -> None:
        """Not beyond either end."""
        self.at = max(0, min(self.at + by, len(self) - 1))

    def _shown(self) -> list[tuple[int, int]]:
        if self._judged == len(self._items):
            return self._hits
        known = len(self._hays)
        self._hays += map(haystack, self._items[known:])
        fits = judge(self.filter)
        start = self._judged
        self._hits += [(far, at) for at, hay in enumerate(self._hays[start:], start) if (far := fits(hay)) is not None]
        self._hits.sort()
        self._judged = len(self._items)
        return self._hits
