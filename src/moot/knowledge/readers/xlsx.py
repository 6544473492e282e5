"""Spreadsheets, in pieces of up to 40 rows."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from openpyxl import load_workbook

_ROWS = 40


def read(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the non-empty rows of each sheet in pieces, each with the number of its first row."""
    workbook = load_workbook(BytesIO(data), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        lines, first = list[str](), 0
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            if any(value is not None for value in row):
                first = first or number
                lines.append(" | ".join("" if value is None else str(value) for value in row).rstrip(" |"))
            if len(lines) >= _ROWS:
                yield f"sheet {sheet.title}, row {first}", "\n".join(lines)
                lines, first = [], 0
        yield f"sheet {sheet.title}, row {first}", "\n".join(lines)
