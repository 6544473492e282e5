"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.cli.lines import Lines
from moot.guard.terminal import clean
from moot.types.canonical import Json


def print_table(output: Lines, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns. The last column is not padded or cut."""
    cleaned = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in [list(head), *cleaned]) for at in range(len(head) - 1)]
    for number, row in enumerate([list(head), *cleaned]):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        text = "  ".join([*cells, row[-1]]).rstrip()
        output.data((output.styled(text, "bold") if number == 0 else text) + "\n")


def print_fields(output: Lines, fields: Mapping[str, Json]) -> None:
    """Print one `key: value` line for each field."""
    for key, value in fields.items():
        output.line(f"{key}: {value if isinstance(value, str) else output.to_json(value)}")
