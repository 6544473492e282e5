"""Items page by page, no more of them than are needed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from moot.cli.picking.items import Item, Items
from moot.cli.picking.listing import Listing


class Feed:
    """Fills one listing; closed by its owner with `aclose`."""

    def __init__(self, items: Items, listing: Listing) -> None:
        self.listing = listing
        self.ended = False
        self._pages: AsyncGenerator[Sequence[Item], None] | None = None
        if callable(items):
            self._pages = items()
        else:
            listing.add(items)
            self.ended = True

    def wants(self, rows: int) -> bool:
        """Whether more should be fetched: the selection is within two screens of the end, or there is a filter that must see all."""
        return not self.ended and (bool(self.listing.filter.strip()) or len(self.listing) < self.listing.at + 2 * rows)

    async def more(self) -> None:
        """One page more."""
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
