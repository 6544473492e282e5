"""Tables laid out with rich."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.box import Box
from rich.console import Console
from rich.segment import Segment
from rich.style import Style as RichStyle
from rich.table import Table
from rich.text import Text

from moot.cli.terminal.look import Look
from moot.cli.terminal.text import BOLD, CODE, DIM, ITALIC, LINK, STRIKE, Line, Style
from moot.cli.transcript.tables import TableCells

_BOX = Box("    \n  │ \n ─┼ \n  │ \n ─┼ \n ─┼ \n  │ \n    \n")
_ASCII_BOX = Box("    \n  | \n -+ \n  | \n -+ \n -+ \n  | \n    \n", ascii=True)
_CONSOLE = Console(file=io.StringIO(), color_system=None, legacy_windows=False, _environ={})
"""Console used only for layout; it writes nothing."""


def draw_grid(look: Look, columns: int, cells: TableCells, widths: Sequence[int], *, headed: bool) -> list[Line]:
    """Return the lines of a table with columns of these widths."""
    table = Table(
        box=_BOX if look.unicode else _ASCII_BOX,
        show_edge=False,
        pad_edge=False,
        show_header=headed,
        header_style="",
        border_style=_rich(DIM),
    )
    for at, width in enumerate(widths):
        table.add_column(_text(cells.header[at]), width=width, justify=cells.alignment[at] or "left", overflow="fold")  # type: ignore[arg-type]
    for row in cells.rows:
        table.add_row(*(_text(cell) for cell in row[: len(widths)]))
    return [
        [(segment.text, _STYLES.get(segment.style, 0) if segment.style else 0) for segment in line]
        for line in Segment.split_lines(_CONSOLE.render(table, _CONSOLE.options.update(width=columns)))
    ]


def _text(cell: Line) -> Text:
    text = Text()
    for piece, style in cell:
        text.append(piece, _rich(style))
    return text


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
