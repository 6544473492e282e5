"""Plain-text tables, pages, counts and times."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from moot.cli.console.lines import Lines
from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject

_WIDTH, _WRAP = "moot.cli.terminal.text:width_of", "moot.cli.terminal.prompts.rows:wrap_words"
"""Import paths, loaded for texts that are not ASCII and for narrow terminals, so that short commands start fast."""
_LAST_COLUMN = 16
"""Minimum room for the last column of a table. If there is less, the rows become blocks."""


def print_table(output: Lines, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns. Nothing is cut: on a narrow terminal, the last column is wrapped, or each row becomes a block of lines.

    A single word in the last column, such as a URL, is not wrapped, so that it can be copied.
    """
    cleaned = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    table = [list(head), *cleaned]
    measure: Callable[[str], int] = len if all(cell.isascii() for row in table for cell in row) else attribute(_WIDTH)
    widths = [max(measure(row[at]) for row in table) for at in range(len(head))]
    columns = shutil.get_terminal_size().columns if output.stdout_terminal else 0
    indent = sum(widths[:-1]) + 2 * (len(head) - 1)
    room = columns - indent if columns else 0
    if columns and widths[-1] > room and room < _LAST_COLUMN:
        _print_blocks(output, head, cleaned, columns)
        return
    for number, row in enumerate(table):
        cells = [cell + " " * (width - measure(cell)) for cell, width in zip(row[:-1], widths, strict=False)]
        first, *more = attribute(_WRAP)(row[-1], room) if columns and measure(row[-1]) > room and " " in row[-1] else [row[-1]]
        for text in ("  ".join([*cells, first]).rstrip(), *(" " * indent + line for line in more)):
            output.data((output.styled(text, "bold") if number == 0 else text) + "\n")


def _print_blocks(output: Lines, head: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> None:
    """Print each row as a block: its first cell, and below it one line for each other cell that says something."""
    for first, *cells in rows:
        output.data(output.styled(first, "bold") + "\n")
        for name, cell in zip(head[1:], cells, strict=False):
            for at, line in enumerate(attribute(_WRAP)(f"{name.lower()}: {cell}", max(columns - 4, 8)) if cell not in ("", "-") else ()):
                output.data(f"{'    ' if at else '  '}{line}\n")


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
