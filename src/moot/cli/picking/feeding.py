"""Loading of items page by page, only as many as needed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from moot.cli.picking.items import Item, Items
from moot.cli.picking.listing import Listing


class PageLoader:
    """Pages of items, loaded into one listing. The owner closes it with `aclose`."""

    def __init__(self, items: Items, listing: Listing) -> None:
        self.listing = listing
        self.ended = False
        self._pages: AsyncGenerator[Sequence[Item], None] | None = None
        if callable(items):
            self._pages = items()
        else:
            listing.add(items)
            self.ended = True

    def needs_more(self, rows: int) -> bool:
        """Return True if the selection is within two screens of the end, or if a filter has to see all items."""
        return not self.ended and (bool(self.listing.filter.strip()) or len(self.listing) < self.listing.at + 2 * rows)

    async def load(self) -> None:
        """Load the next page."""
        if self._pages is None:
            return
        page = await anext(self._pages, None)
        if page is None:
            self.ended = True
        else:
            self.listing.add(page)

    async def aclose(self) -> None:
        if self._pages is not None:
            await self._pages.aclose()
