"""Conversations as rows of the browser, read page by page, and the keys for actions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from moot.cli.picking.items import Action, Column, Item, Items
from moot.cli.times import age
from moot.convert.given import status_of
from moot.store.listing import Listed
from moot.types.conversation import Conversation
from moot.types.page import Page
from moot.types.run import RunStatus

COLUMNS = (
    Column("AGE", 6, right=True),
    Column("TITLE", 34, grows=True),
    Column("STATUS", 11, rank=1),
    Column("FROM", 10, rank=2),
    Column("COST", 8, rank=3, right=True),
    Column("MSGS", 4, rank=4, right=True),
    Column("MODEL", 20, rank=5),
    Column("IN", 14, rank=6),
)
KEYS: Mapping[str, Action] = {
    "s": Action("show", "c-o"),
    "e": Action("edit a message", "c-e"),
    "w": Action("edit the whole"),
    "m": Action("delete messages"),
    "r": Action("rename", "c-r"),
    "f": Action("fork", "c-f"),
    "a": Action("archive or unarchive", "c-a"),
    "d": Action("delete or restore", "delete"),
    "c": Action("copy id", "c-y"),
    "p": Action("use for --reply"),
}
RETITLES = frozenset({"r"})
"""Actions after which the conversation may no longer match the filter."""
FIRST, _PAGE = 40, 200
"""Rows of the first page, enough for a screen, and of later pages."""
_NANO = 1_000_000_000


Read: TypeAlias = Callable[[Listed], Awaitable[Page[Conversation]]]
"""Function that reads a page."""


def items_of(page: Page[Conversation], live: Mapping[str, RunStatus], now: float) -> list[Item]:
    """Convert a page to rows. `now` is in seconds since the epoch."""
    return [_item(conversation, live, now) for conversation in page.items]


def pages_of(read: Read, wanted: Listed, live: Mapping[str, RunStatus], now: float, first: Page[Conversation] | None = None) -> Items:
    """Return the conversations as rows, most recent activity first. `first` is a page that was already read."""
    if first is not None and first.next_cursor is None:
        return items_of(first, live, now)

    async def pages() -> AsyncGenerator[Sequence[Item], None]:
        page = first or await read(replace(wanted, limit=FIRST))
        yield items_of(page, live, now)
        while page.next_cursor is not None:
            page = await read(replace(wanted, limit=_PAGE, cursor=page.next_cursor))
            yield items_of(page, live, now)

    return pages


def money(conversation: Conversation) -> str:
    """Format the cost, with a + if some runs have no known price."""
    if conversation.cost is None:
        return "-"
    amount = conversation.cost / _NANO
    return f"${amount:.2f}{'+' if conversation.unpriced_runs else ''}" if amount >= 0.01 or not amount else "<$0.01"


def _item(conversation: Conversation, live: Mapping[str, RunStatus], now: float) -> Item:
    title = conversation.title or "untitled"
    status = status_of(conversation, live)
    cells = (
        age(conversation.updated_at, now),
        title,
        "" if status == "standby" else status,
        conversation.came_from,
        money(conversation),
        str(conversation.message_count),
        conversation.model.rpartition("@")[0] or conversation.model or "-",
        Path(conversation.directory).name,
    )
    words = (
        f"{title} {conversation.model} {conversation.agent} {conversation.came_from} {status} {conversation.directory} {conversation.id}"
    )
    return Item(conversation.id, cells, words)
