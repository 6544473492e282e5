"""JSON lines of any size, one at a time, with what is wrong about each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from moot.errors import UsageError
from moot.formats._source.pieces import parsed
from moot.types.canonical import JsonObject

__all__ = ["LONGEST_LINE", "Line", "json_lines"]

LONGEST_LINE = 64 << 20
"""Bytes; what is longer is passed over and never held."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a source."""

    number: int
    """From 1."""
    raw: bytes
    """With its line end; empty when it is too long to be held."""
    value: JsonObject | None
    problem: str = ""
    """What is wrong, and in which line; empty = `value` is there."""


def json_lines(path: Path) -> Iterator[Line]:
    """Each line that is not blank. Raises UsageError when the file can't be read."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(_lines(file), 1):
                if raw is None:
                    yield Line(number, b"", None, f"line {number} is longer than {LONGEST_LINE >> 20} MiB")
                elif raw.strip():
                    yield _line(number, raw)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines with their ends; None for one that is too long."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        while not line.endswith(b"\n") and (line := file.readline(_CHUNK)):
            pass
        yield None


def _line(number: int, raw: bytes) -> Line:
    with suppress(ValueError):
        value = parsed(raw)
        if isinstance(value, dict):
            return Line(number, raw, value)
    if b"\x00" in raw:
        return Line(number, raw, None, f"line {number} has NUL bytes, as a loss of power leaves them")
    if not raw.endswith(b"\n"):
        return Line(number, raw, None, f"line {number}, the last, is cut off")
    return Line(number, raw, None, f"line {number} is no JSON object")
