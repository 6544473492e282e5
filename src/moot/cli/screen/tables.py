"""A Markdown table fitted to the terminal; where the columns would be too narrow to read, a list of its rows."""

from __future__ import annotations

import re

from moot.cli.screen.cells import width_of
from moot.cli.screen.look import Look
from moot.cli.screen.spans import Spans
from moot.cli.screen.styles import BOLD, DIM, Line, Style
from moot.cli.screen.wrapping import wrapped

__all__ = ["MEASURED", "Table", "is_ruler"]

MEASURED = 60
"""The first so many rows decide how wide the columns are; the others come as they are said."""
_NARROW = 4
_RULER = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_CELL = re.compile(r"(?:[^|\\]|\\.|\\)*", re.DOTALL)


def is_ruler(line: str) -> bool:
    """Whether the line is what stands below a table's header."""
    return "-" in line and "|" in line and _RULER.fullmatch(line) is not None


class Table:
    """Rows in, lines out; `taken` has what is finished."""

    def __init__(self, look: Look, indent: Line, header: str, ruler: str) -> None:
        self._look = look
        self._indent = indent
        self._columns = max(look.columns - _width(indent), 1)
        self._header = _cells(header)
        self._aligned = [_alignment(cell) for cell in _cells(ruler)]
        self._rows: list[list[str]] = []
        self._widths: list[int] = []
        """Empty = not decided yet."""
        self.taken: list[Line] = []

    def copy(self) -> Table:
        """The same table, to be gone on with apart."""
        twin = Table(self._look, self._indent, "", "")
        twin._header, twin._aligned = self._header, self._aligned
        twin._rows, twin._widths = [*self._rows], self._widths
        return twin

    def row(self, line: str) -> None:
        """The next row."""
        cells = _cells(line)
        count = len(self._header)
        # a row with too many cells keeps their text in the last one
        self._rows.append([*cells[: count - 1], " | ".join(cells[count - 1 :])] if len(cells) > count else cells)
        if self._widths:
            self._flush()
        elif len(self._rows) == MEASURED:
            self._decide()

    def resize(self, look: Look) -> None:
        """Rows that come from here on fit another width."""
        self._look = look
        self._columns = max(look.columns - _width(self._indent), 1)
        if self._widths:
            self._widths = _fitted(self._widths, self._columns - 3 * (len(self._widths) - 1))

    def end(self) -> None:
        """There are no more rows."""
        if not self._widths:
            self._decide()

    def _decide(self) -> None:
        drawn = [[self._styled(cell, BOLD) for cell in self._header], *([self._styled(cell) for cell in row] for row in self._rows)]
        natural = [max((_width(row[at]) for row in drawn if at < len(row)), default=1) for at in range(len(self._header))]
        self._widths = _fitted(natural, self._columns - 3 * (len(natural) - 1))
        if not self._stacked:
            self._put(self._header, BOLD)
            line = self._look.sign("─┼─", "-+-").join(self._look.sign("─", "-") * width for width in self._widths)
            self.taken.append([*self._indent, (line, DIM)])
        self._flush()

    @property
    def _stacked(self) -> bool:
        return sum(self._widths) + 3 * (len(self._widths) - 1) > self._columns

    def _flush(self) -> None:
        for row in self._rows:
            if self._stacked:
                self._stack(row)
            else:
                self._put(row)
        self._rows = []

    def _styled(self, cell: str, style: Style = 0) -> Line:
        sink = _Pieces()
        spans = Spans(sink, style, keep_marks=not self._look.colour)
        spans.feed(cell)
        spans.end()
        return sink.pieces

    def _put(self, row: list[str], style: Style = 0) -> None:
        cells = [wrapped(self._styled(cell, style), width) for cell, width in zip(row, self._widths, strict=False)]
        cells += [[[]] for _ in range(len(self._widths) - len(cells))]
        bar = (self._look.sign(" │ ", " | "), DIM)
        for at in range(max(map(len, cells))):
            line = [*self._indent]
            for index, cell in enumerate(cells):
                if index:
                    line.append(bar)
                piece = cell[at] if at < len(cell) else []
                line += _padded(piece, self._widths[index], self._alignment(index))
            self.taken.append(line)

    def _alignment(self, index: int) -> str:
        return self._aligned[index] if index < len(self._aligned) else ""

    def _stack(self, row: list[str]) -> None:
        if self.taken or self._rows[0] is not row:
            self.taken.append([*self._indent, (self._look.sign("─", "-") * min(self._columns, 8), DIM)])
        for at, cell in enumerate(row):
            name = self._styled(self._header[at], BOLD) if at < len(self._header) else []
            self.taken += wrapped([*name, (": ", DIM), *self._styled(cell)], self._look.columns, self._indent, [*self._indent, ("  ", 0)])


class _Pieces:
    def __init__(self) -> None:
        self.pieces: Line = []

    def add(self, text: str, style: Style) -> None:
        self.pieces.append((text, style))

    def newline(self) -> None:
        self.pieces.append((" ", 0))


def _cells(line: str) -> list[str]:
    line = line.strip()
    cells: list[str] = []
    at = 1 if line.startswith("|") else 0
    while at < len(line):
        match = _CELL.match(line, at)
        end = match.end() if match else at
        cells.append(line[at:end].strip().replace("\\|", "|"))
        at = end + 1
    return cells


def _alignment(ruler: str) -> str:
    return {(True, True): "center", (False, True): "right"}.get((ruler.startswith(":"), ruler.endswith(":")), "")


def _width(line: Line) -> int:
    return sum(width_of(text) for text, _ in line)


def _padded(line: Line, width: int, alignment: str) -> Line:
    missing = max(width - _width(line), 0)
    left = {"right": missing, "center": missing // 2}.get(alignment, 0)
    return [(" " * left, 0), *line, (" " * (missing - left), 0)]


def _fitted(natural: list[int], room: int) -> list[int]:
    """Widths that fit: the narrow columns keep theirs, the wide ones share what is left."""
    widths = [max(width, 1) for width in natural]
    while sum(widths) > room:
        widest = max(widths)
        if widest <= _NARROW:
            break
        seconds = max((width for width in widths if width < widest), default=_NARROW)
        many = widths.count(widest)
        over = sum(widths) - room
        target = max(seconds, widest - -(-over // many), _NARROW)
        if target == widest:
            break
        widths = [target if width == widest else width for width in widths]
    return widths
