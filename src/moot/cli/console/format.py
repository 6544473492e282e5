"""Plain-text tables, pages, counts and times."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from moot.cli.console.lines import Lines
from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject


def print_table(output: Lines, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns. The last column is not padded or cut."""
    cleaned = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in [list(head), *cleaned]) for at in range(len(head) - 1)]
    for number, row in enumerate([list(head), *cleaned]):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        text = "  ".join([*cells, row[-1]]).rstrip()
        output.data((output.styled(text, "bold") if number == 0 else text) + "\n")


def print_fields(output: Lines, fields: JsonObject, *, json: bool) -> None:
    """Print one `key: value` line for each field, or all as one JSON document."""
    if json:
        output.json(fields)
        return
    for key, value in fields.items():
        output.line(f"{key}: {value if isinstance(value, str) else output.to_json(value)}")


@dataclass(frozen=True, slots=True)
class Paged:
    """One page of a list."""

    items: Sequence[JsonObject]
    next_cursor: str | None

    def to_json(self) -> JsonObject:
        return {"data": list[Json](self.items), "next_cursor": self.next_cursor}

    def say_more(self, output: Lines) -> None:
        """Print how to show the next page, if there is one."""
        if self.next_cursor:
            output.say(f"moot: next page: --cursor {self.next_cursor}", "dim")


def paged(items: Sequence[JsonObject], limit: int, cursor: str | None, key: str) -> Paged:
    """Return the page after the item whose field `key` equals the cursor, or the first page. Raise UsageError if no item has the cursor."""
    start = 0
    if cursor is not None:
        names = [str(item[key]) for item in items]
        if cursor not in names:
            raise UsageError(f"Invalid cursor {cursor!r}.", fix="Use the next_cursor from the previous page.")
        start = names.index(cursor) + 1
    page = items[start : start + limit]
    return Paged(page, str(page[-1][key]) if page and start + limit < len(items) else None)


_ORDER = ("messages", "reasoning", "signatures", "tool calls", "pictures", "files", "other parts", "titles", "branches", "sub-agents")
"""Order of counts in reports. Any other names come after these, in their own order."""
_SINGULAR = {"branches": "branch"}


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 source`, `2 sources`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_counts(counts: Mapping[str, int]) -> list[str]:
    """Return nonzero counts with their nouns, most important first: `6 messages`, `1 tool call`."""
    ranked = sorted(counts.items(), key=lambda item: _ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER))
    return [f"{count:,} {_SINGULAR.get(name, name.removesuffix('s')) if count == 1 else name}" for name, count in ranked if count]


def format_bytes(size: float) -> str:
    """Format a size with a decimal unit: `1.5 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size:.0f} B"


_STEPS = ((60, "s"), (60, "min"), (24, "h"), (30, "d"), (12, "mo"))


_AGO = re.compile(r"(\d{1,9})([hdwmy])")
_SECONDS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}


def parse_time(text: str, option: str = "--since") -> int:
    """Parse an option's date or age, such as `2w`, as ms since the epoch. Raise UsageError if it is invalid."""
    if match := _AGO.fullmatch(text):
        return max(0, int((time.time() - int(match[1]) * _SECONDS[match[2]]) * 1000))
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"Invalid value {text!r} for '{option}': expected a date such as 2026-01-31, or a duration such as 12h, 30d, 2w, 6m or 1y."
        ) from error


def moment(ms: int) -> str:
    """Format a timestamp, in ms since the epoch, as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000))


def age(ms: int, now: float) -> str:
    """Format the age of a timestamp in one unit: `5 min`. `ms` is in ms and `now` in seconds since the epoch."""
    amount = max(0, int(now - ms / 1000))
    for size, unit in _STEPS:
        if amount < size:
            return f"{amount} {unit}"
        amount //= size
    return f"{amount} y"
