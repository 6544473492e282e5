"""Pagination of lists in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moot.cli.lines import Lines
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Paged:
    """One page."""

    items: Sequence[JsonObject]
    next_cursor: str | None

    def to_json(self) -> JsonObject:
        return {"data": list[Json](self.items), "next_cursor": self.next_cursor}

    def say_more(self, output: Lines) -> None:
        """Print how to get the next page, if there is one."""
        if self.next_cursor:
            output.say(f"moot: next page: --cursor {self.next_cursor}", "dim")


def paged(items: Sequence[JsonObject], limit: int, cursor: str | None, key: str) -> Paged:
    """Return the page after the item whose key is the cursor. Raise UsageError if no item has this key."""
    start = 0
    if cursor is not None:
        names = [str(item[key]) for item in items]
        if cursor not in names:
            raise UsageError(f"Invalid cursor {cursor!r}.", fix="Use the next_cursor of the previous page.")
        start = names.index(cursor) + 1
    page = items[start : start + limit]
    return Paged(page, str(page[-1][key]) if page and start + limit < len(items) else None)
