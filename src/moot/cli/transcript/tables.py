"""Draw tables in columns, or row by row as a list if the columns would be too narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moot.cli.terminal.look import Look
from moot.cli.terminal.text import DIM, Line, line_width, width_of, wrapped
from moot.plugins.registry import attribute

_NARROWEST = 4
_GAP = 3
"""Number of blank columns between two cells."""
_GRID = "moot.cli.transcript.grid:draw_grid"
"""Import path, loaded when the first table is drawn, because rich is a large library."""


@dataclass(frozen=True, slots=True)
class TableCells:
    """The styled cells of a table or of some of its rows."""

    header: Sequence[Line]
    alignment: Sequence[str]
    rows: Sequence[Sequence[Line]]


def natural_widths(cells: TableCells) -> list[int]:
    """Return the width that each column has if nothing is wrapped."""
    rows = [cells.header, *cells.rows]
    return [max((_widest(row[at]) for row in rows if at < len(row)), default=1) for at in range(len(cells.header))]


def draw_table(look: Look, columns: int, cells: TableCells, natural: Sequence[int], *, headed: bool) -> list[Line]:
    """Return the lines of the rows, in columns of at most the given natural widths. If `headed` is True, include the header."""
    widths = _fitted(natural, columns - _GAP * (len(natural) - 1))
    if sum(widths) + _GAP * (len(widths) - 1) <= columns:
        lines: list[Line] = attribute(_GRID)(look, columns, cells, widths, headed=headed)
        # rich counts joined emoji as one character, but not every terminal draws them that way
        if all(line_width(line) <= columns for line in lines):
            return lines
    return _stacked(look, columns, cells, headed=headed)


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


def _widest(cell: Line) -> int:
    return max(map(width_of, "".join(text for text, _ in cell).split("\n")))


def _fitted(natural: Sequence[int], room: int) -> list[int]:
    """Return column widths that fit into the available room: narrow columns keep their width, wide columns share the rest."""
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
