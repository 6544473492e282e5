"""What a list looks like: lines of styled pieces that fit a width. Pure, and the same whoever puts them on the screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from moot.cli.picking.items import Choice, Column, Item
from moot.cli.picking.listing import Listing
from moot.guard.terminal import clean

Piece: TypeAlias = tuple[str, str]
"""Style and text; the styles are title, head, typed, selected, dim, key."""
Line: TypeAlias = list[Piece]

MOST_ROWS = 20
"""Items that are shown at once: a list is read, not scrolled past."""
_GAP = 2
_HEADED = 60
"""From this width on the columns are named."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is drawn on."""

    width: int
    height: int
    unicode: bool
    measure: Callable[[str], int]
    """Terminal cells of a text."""

    @property
    def marks(self) -> tuple[str, str, str]:
        """Selection, ellipsis, separator."""
        return ("❯", "…", " · ") if self.unicode else (">", "~", " | ")


@dataclass(frozen=True, slots=True)
class View:
    """What is to be drawn."""

    choice: Choice
    scope: int
    listing: Listing
    ended: bool
    """Whether all items are here."""
    menu: bool = False
    """Whether the actions are spread out."""
    top: int = 0
    """The first row that is shown."""
    filled: int = 0
    """Rows that are taken up at least: the footer does not jump while somebody types."""


def rows_of(view: View, sheet: Sheet) -> int:
    """How many items there is room for."""
    around = 2 + len(_footer(view, sheet)) + _is_headed(view, sheet)
    return max(1, min(MOST_ROWS, sheet.height - 1 - around))


def draw(view: View, sheet: Sheet) -> list[Line]:
    """Title, filter, rows and footer; the cursor belongs behind the filter, in the second line."""
    number = rows_of(view, sheet)
    columns = fitting(view.choice.columns, sheet.width)
    lines = [_title(view, sheet), typed(view, sheet)]
    if _is_headed(view, sheet):
        lines.append([("head", "  " + _cells(view.choice.columns, [column.title for column in view.choice.columns], columns, sheet))])
    items = view.listing.rows(view.top, number)
    lines += [_row(view, sheet, columns, item, view.top + at) for at, item in enumerate(items)]
    if not items:
        words = sheet.marks[1] if not view.ended else "nothing fits" if view.listing.filter.strip() else view.choice.empty
        lines.append([("dim", cut(f"  {words}", sheet.width, sheet))])
    lines += [[] for _ in range(min(number, view.filled) - max(len(items), 1))]
    return lines + _footer(view, sheet)


def typed(view: View, sheet: Sheet) -> Line:
    """The filter, of a long one the end."""
    text = view.listing.filter
    while text and sheet.measure(text) > sheet.width - 3:
        text = text[1:]
    hint = "" if view.listing.filter else "type to filter"
    return [("key", "> "), ("typed", text), ("dim", cut(hint, sheet.width - 3, sheet))]


def cut(text: str, width: int, sheet: Sheet) -> str:
    """The text in at most that many cells, with a mark where something is left out."""
    if sheet.measure(text) <= width:
        return text
    mark = sheet.marks[1]
    kept, used = "", 0
    for character in text:
        used += sheet.measure(character)
        if used > width - 1:
            break
        kept += character
    return kept + mark if width > 0 else ""


def one_line(text: str, *, unicode: bool = True) -> str:
    """Untrusted text as a cell may have it."""
    line = " ".join(clean(text).split())
    return line if unicode else line.encode("ascii", "replace").decode()


def fitting(columns: Sequence[Column], width: int) -> list[int]:
    """The width of each column, 0 = left out: the highest ranks go first where there is no room."""
    shown = list(range(len(columns)))
    while _taken(columns, shown) > width and (droppable := [at for at in shown if columns[at].rank]):
        shown.remove(max(droppable, key=lambda at: columns[at].rank))
    spare = width - _taken(columns, shown)
    return [max(1, column.width + spare * column.grows) if at in shown else 0 for at, column in enumerate(columns)]


def _taken(columns: Sequence[Column], shown: Sequence[int]) -> int:
    return _GAP + sum(columns[at].width for at in shown) + _GAP * (len(shown) - 1) + 1


def _is_headed(view: View, sheet: Sheet) -> bool:
    return sheet.width >= _HEADED and sheet.height >= 10 and any(column.title for column in view.choice.columns)


def _title(view: View, sheet: Sheet) -> Line:
    listing = view.listing
    more = "" if view.ended else "+"
    count = f"{len(listing):,} of {listing.count:,}{more}" if listing.filter.strip() else f"{listing.count:,}{more}"
    room = sheet.width - len(count) - 4
    title = cut(one_line(view.choice.scopes[view.scope].title, unicode=sheet.unicode), max(room, 4), sheet)
    return [("title", title), ("dim", cut(f"{sheet.marks[2]}{count}", sheet.width - 1 - sheet.measure(title), sheet))]


def _row(view: View, sheet: Sheet, widths: Sequence[int], item: Item, place: int) -> Line:
    selected = place == view.listing.at
    text = _cells(view.choice.columns, item.cells, widths, sheet)
    return [("selected", f"{sheet.marks[0]} {text}")] if selected else [("", f"  {text}")]


def _cells(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], sheet: Sheet) -> str:
    pieces: list[str] = []
    for column, cell, width in zip(columns, cells, widths, strict=False):
        if width:
            text = cut(one_line(cell, unicode=sheet.unicode), width, sheet)
            blank = " " * (width - sheet.measure(text))
            pieces.append(blank + text if column.right else text + blank)
    return (" " * _GAP).join(pieces).rstrip()


def _footer(view: View, sheet: Sheet) -> list[Line]:
    hints = _menu(view) if view.menu else _hints(view, sheet)
    separator = sheet.marks[2]
    lines: list[Line] = [[]]
    used = 0
    for key, words in hints:
        length = sheet.measure(f"{key} {words}")
        if lines[-1] and used + len(separator) + length >= sheet.width:
            lines.append([])
            used = 0
        if lines[-1]:
            lines[-1].append(("dim", separator))
            used += len(separator)
        lines[-1] += [("key", cut(key, sheet.width - 1, sheet)), ("dim", cut(f" {words}", sheet.width - 1 - len(key), sheet))]
        used += length
    return lines[: max(1, sheet.height - 4)]


def _hints(view: View, sheet: Sheet) -> list[tuple[str, str]]:
    hints = [("Enter", view.choice.enter)]
    if view.choice.keys:
        hints.append(("→" if sheet.unicode else "Right", "more"))
    if len(view.choice.scopes) > 1:
        hints.append(("Tab", one_line(view.choice.scopes[(view.scope + 1) % len(view.choice.scopes)].title, unicode=sheet.unicode)))
    return [*hints, ("Esc", "clear" if view.listing.filter else "leave")]


def _menu(view: View) -> list[tuple[str, str]]:
    return [("Enter", view.choice.enter), *((letter, action.words) for letter, action in view.choice.keys.items()), ("Esc", "back")]


def speaks_unicode() -> bool:
    """Whether the locale can show more than ASCII; one that says nothing is taken for a modern one."""
    named = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "UTF-8")
    return "utf-8" in named.lower() or "utf8" in named.lower()


def moves_cursor() -> bool:
    """Whether the terminal can draw a list over itself."""
    return os.environ.get("TERM", "") not in ("dumb", "")
