"""Layout of the picker as lines of styled text. Without side effects, and without the large table of character widths."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from moot.cli.terminal.prompts.items import Choice, Column, Listing
from moot.guard.terminal import clean

Piece: TypeAlias = tuple[str, str]
"""Style and text. The styles are title, head, typed, selected, dim and key."""
Line: TypeAlias = list[Piece]

MAX_ROWS = 20
"""Maximum number of items shown at once."""
_GAP = 2
_HEADER_WIDTH = 60
"""Minimum terminal width for a line of column titles."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The size and capabilities of the terminal for which a list is drawn."""

    width: int
    height: int
    unicode: bool
    measure: Callable[[str], int]
    """Return the number of terminal cells of a text."""

    @property
    def marks(self) -> tuple[str, str, str]:
        """Return the selection mark, the ellipsis and the separator."""
        return ("❯", "…", " · ") if self.unicode else (">", "~", " | ")


@dataclass(frozen=True, slots=True)
class View:
    """The state of a picker to draw."""

    choice: Choice
    scope: int
    listing: Listing
    ended: bool
    """True if all items are loaded."""
    menu: bool = False
    """True if the menu of actions is open."""
    typing: bool = True
    """True if letters are typed into the filter."""
    top: int = 0
    """The first row to show."""
    filled: int = 0
    """Minimum number of rows, so that the footer does not jump while the user types."""


def visible_rows(view: View, canvas: Canvas) -> int:
    """Return the number of items that fit."""
    around = 2 + len(_footer(view, canvas)) + _has_header(view, canvas) + (view.listing.groups if _has_headings(canvas) else 0)
    return max(1, min(MAX_ROWS, canvas.height - 1 - around))


def draw(view: View, canvas: Canvas) -> list[Line]:
    """Return title, filter, rows and footer. The cursor belongs after the filter, in the second line."""
    number = visible_rows(view, canvas)
    columns = column_widths(view.choice.columns, canvas.width)
    lines = [_title(view, canvas), filter_line(view, canvas)]
    if _has_header(view, canvas):
        lines.append([("head", "  " + _cells(view.choice.columns, [column.title for column in view.choice.columns], columns, canvas))])
    items = view.listing.rows(view.top, number)
    group = ""
    for at, item in enumerate(items, view.top):
        if item.group != group and _has_headings(canvas):
            lines.append([("title", truncate(item.group, canvas.width, canvas))])
        group = item.group
        text = _cells(view.choice.columns, item.cells, columns, canvas)
        lines.append([("selected", f"{canvas.marks[0]} {text}") if at == view.listing.at else ("", f"  {text}")])
    if not items:
        words = canvas.marks[1] if not view.ended else "No matches" if view.listing.filter.strip() else view.choice.empty
        lines.append([("dim", truncate(f"  {words}", canvas.width, canvas))])
    lines += [[] for _ in range(min(number, view.filled) - max(len(items), 1))]
    return lines + _footer(view, canvas)


def filter_line(view: View, canvas: Canvas) -> Line:
    """Return the line with the filter, or with the end of a long filter."""
    text = view.listing.filter
    while text and canvas.measure(text) > canvas.width - 3:
        text = text[1:]
    hint = "" if view.listing.filter else "Type to filter" if view.typing else "Press / to filter"
    return [("key", "> "), ("typed", text), ("dim", truncate(hint, canvas.width - 3, canvas))]


def truncate(text: str, width: int, canvas: Canvas) -> str:
    """Cut the text to at most `width` cells, ending with an ellipsis if it was shortened."""
    if canvas.measure(text) <= width:
        return text
    mark = canvas.marks[1]
    kept, used = "", 0
    for character in text:
        used += canvas.measure(character)
        if used > width - 1:
            break
        kept += character
    return kept + mark if width > 0 else ""


def one_line(text: str, *, unicode: bool = True) -> str:
    """Return untrusted text as one line without control characters."""
    line = " ".join(clean(text).split())
    return line if unicode else line.encode("ascii", "replace").decode()


def column_widths(columns: Sequence[Column], width: int) -> list[int]:
    """Return the width of each column; 0 hides it. Columns with the highest rank are hidden first."""
    shown = list(range(len(columns)))
    while _total_width(columns, shown) > width and (droppable := [at for at in shown if columns[at].rank]):
        shown.remove(max(droppable, key=lambda at: columns[at].rank))
    spare, growing = width - _total_width(columns, shown), max(1, sum(columns[at].grows for at in shown))
    return [max(1, column.width + spare * column.grows // growing) if at in shown else 0 for at, column in enumerate(columns)]


def _total_width(columns: Sequence[Column], shown: Sequence[int]) -> int:
    return _GAP + sum(columns[at].width for at in shown) + _GAP * (len(shown) - 1) + 1


def _has_header(view: View, canvas: Canvas) -> bool:
    return canvas.width >= _HEADER_WIDTH and canvas.height >= 10 and any(column.title for column in view.choice.columns)


def _has_headings(canvas: Canvas) -> bool:
    return canvas.height >= 12


def _title(view: View, canvas: Canvas) -> Line:
    listing = view.listing
    more = "" if view.ended else "+"
    count = f"{len(listing):,} of {listing.count:,}{more}" if listing.filter.strip() else f"{listing.count:,}{more}"
    room = canvas.width - len(count) - 4
    title = truncate(one_line(view.choice.scopes[view.scope].title, unicode=canvas.unicode), max(room, 4), canvas)
    return [("title", title), ("dim", truncate(f"{canvas.marks[2]}{count}", canvas.width - 1 - canvas.measure(title), canvas))]


def _cells(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], canvas: Canvas) -> str:
    pieces: list[str] = []
    for column, cell, width in zip(columns, cells, widths, strict=False):
        if width:
            text = truncate(one_line(cell, unicode=canvas.unicode), width, canvas)
            blank = " " * (width - canvas.measure(text))
            pieces.append(blank + text if column.right else text + blank)
    return (" " * _GAP).join(pieces).rstrip()


def _footer(view: View, canvas: Canvas) -> list[Line]:
    width = canvas.width - 1
    items: list[Line] = [
        [("key", truncate(key, width, canvas)), ("dim", truncate(f" {words}", width - len(key), canvas))]
        for key, words in _hints(view, canvas)
    ]
    return flow(items, width, canvas.measure, canvas.marks[2])[: max(1, canvas.height - 4)]


def flow(items: Iterable[Line], width: int, measure: Callable[[str], int], separator: str = "") -> list[Line]:
    """Arrange the items in lines of at most `width` cells, with as many items per line as fit."""
    lines: list[Line] = []
    used = 0
    for item in items:
        length = sum(measure(text) for _, text in item)
        if not lines or used + len(separator) + length > width:
            lines.append([])
            used = 0
        elif separator:
            lines[-1].append(("dim", separator))
            used += len(separator)
        lines[-1] += item
        used += length
    return lines


def _hints(view: View, canvas: Canvas) -> list[tuple[str, str]]:
    if view.choice.letters:
        return _letter_hints(view)
    hints = [("Enter", view.choice.enter)]
    if view.menu:
        return [*hints, *((letter, action.words) for letter, action in view.choice.keys.items()), ("Esc", "back")]
    if view.choice.keys:
        hints.append(("→" if canvas.unicode else "Right", "actions"))
    if len(view.choice.scopes) > 1:
        hints.append(("Tab", one_line(view.choice.scopes[(view.scope + 1) % len(view.choice.scopes)].title, unicode=canvas.unicode)))
    return [*hints, ("Esc", "clear filter" if view.listing.filter else "close")]


def _letter_hints(view: View) -> list[tuple[str, str]]:
    """Return the keys of a list in which letters are commands. Letters of the same action share a hint."""
    if view.typing:
        return [("Enter", "keep filter"), ("Esc", "clear filter")]
    letters: dict[str, str] = {}
    for letter, action in view.choice.keys.items():
        letters[action.words] = f"{letters[action.words]}/{letter}" if action.words in letters else letter
    closing = ("Esc", "clear filter") if view.listing.filter else ("q", "close")
    return [("Enter", view.choice.enter), *((keys, words) for words, keys in letters.items()), ("/", "filter"), closing]


def speaks_unicode() -> bool:
    """Return True if the locale can show more than ASCII. Without a locale, assume UTF-8."""
    named = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "UTF-8")
    return "utf-8" in named.lower() or "utf8" in named.lower()


def moves_cursor() -> bool:
    """Return True if the terminal can move its cursor."""
    return os.environ.get("TERM", "") not in ("dumb", "")


def terminal_size() -> os.terminal_size:
    """Return the size of the terminal on stdout; 80 by 24 if it is unknown."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:  # the terminal is gone
        columns = rows = 0
    return os.terminal_size((columns or 80, rows or 24))
