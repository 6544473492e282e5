"""Tables drawn with rich; a list of the rows if the columns would be too narrow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import Box
from rich.console import Console
from rich.segment import Segment
from rich.style import Style as RichStyle
from rich.table import Table
from rich.text import Text

from moot.cli.terminal.look import Look
from moot.cli.terminal.styles import BOLD, CODE, DIM, ITALIC, LINK, STRIKE, Line, Style
from moot.cli.terminal.text import width_of, wrapped

__all__ = ["TableCells", "draw_table", "natural_widths"]

_NARROWEST = 4
_GAP = 3
"""Columns between two cells."""
_BOX = Box("    \n  │ \n ─┼ \n  │ \n ─┼ \n ─┼ \n  │ \n    \n")
_ASCII_BOX = Box("    \n  | \n -+ \n  | \n -+ \n -+ \n  | \n    \n", ascii=True)
_CONSOLE = Console(file=io.StringIO(), color_system=None, legacy_windows=False, _environ={})
"""Lays tables out; it writes nothing."""
_JUSTIFY = {"left": "left", "right": "right", "center": "center"}


@dataclass(frozen=True, slots=True)
class TableCells:
    """The styled cells of a table or of some of its rows."""

    header: Sequence[Line]
    alignment: Sequence[str]
    rows: Sequence[Sequence[Line]]


def natural_widths(cells: TableCells) -> list[int]:
    """Return the width of each column if nothing is wrapped."""
    rows = [cells.header, *cells.rows]
    return [max((_widest(row[at]) for row in rows if at < len(row)), default=1) for at in range(len(cells.header))]


def draw_table(look: Look, columns: int, cells: TableCells, natural: Sequence[int], *, headed: bool) -> list[Line]:
    """Return the lines of the rows, in columns of at most the given natural widths; with `headed`, include the header."""
    widths = _fitted(natural, columns - _GAP * (len(natural) - 1))
    if sum(widths) + _GAP * (len(widths) - 1) <= columns:
        lines = _grid(look, columns, cells, widths, headed=headed)
        # rich counts joined emoji as one character, but not every terminal draws them that way
        if all(sum(width_of(text) for text, _ in line) <= columns for line in lines):
            return lines
    return _stacked(look, columns, cells, headed=headed)


def _grid(look: Look, columns: int, cells: TableCells, widths: Sequence[int], *, headed: bool) -> list[Line]:
    table = Table(
        box=_BOX if look.unicode else _ASCII_BOX,
        show_edge=False,
        pad_edge=False,
        show_header=headed,
        header_style="",
        border_style=_rich(DIM),
    )
    for at, width in enumerate(widths):
        side = cells.alignment[at] or "left"
        table.add_column(_text(cells.header[at]), width=width, justify=_JUSTIFY[side], overflow="fold")  # type: ignore[arg-type]
    for row in cells.rows:
        table.add_row(*(_text(cell) for cell in row[: len(widths)]))
    return [
        [(segment.text, _STYLES.get(segment.style, 0) if segment.style else 0) for segment in line]
        for line in Segment.split_lines(_CONSOLE.render(table, _CONSOLE.options.update(width=columns)))
    ]


def _stacked(look: Look, columns: int, cells: TableCells, *, headed: bool) -> list[Line]:
    lines: list[Line] = []
    for number, row in enumerate(cells.rows):
        if number or not headed:
            lines.append([(look.sign("─", "-") * min(columns, 8), DIM)])
        for at, cell in enumerate(row):
            name = cells.header[at] if at < len(cells.header) else []
            flat = [(text.replace("\n", " "), style) for text, style in (*name, (": ", DIM), *cell)]
            lines += wrapped(flat, columns, [], [("  ", 0)])
    return lines


def _text(cell: Line) -> Text:
    text = Text()
    for piece, style in cell:
        text.append(piece, _rich(style))
    return text


def _widest(cell: Line) -> int:
    return max(map(width_of, "".join(text for text, _ in cell).split("\n")))


def _fitted(natural: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: narrow columns keep theirs, wide ones share what is left."""
    widths = [max(width, 1) for width in natural]
    while sum(widths) > room:
        widest = max(widths)
        if widest <= _NARROWEST:
            break
        second = max((width for width in widths if width < widest), default=_NARROWEST)
        excess = sum(widths) - room
        target = max(second, widest - -(-excess // widths.count(widest)), _NARROWEST)
        if target == widest:
            break
        widths = [target if width == widest else width for width in widths]
    return widths


_STYLES: dict[RichStyle, Style] = {}


def _rich(style: Style) -> RichStyle:
    colour = "cyan" if style & CODE else "blue" if style & LINK else None
    found = RichStyle(
        color=colour,
        bold=bool(style & BOLD) or None,
        dim=bool(style & DIM) or None,
        italic=bool(style & ITALIC) or None,
        strike=bool(style & STRIKE) or None,
    )
    _STYLES[found] = style
    return found
