"""JSON Lines of any size, read one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from moot.errors import UsageError
from moot.formats._source.pieces import parsed
from moot.formats._source.plain import plain
from moot.types.canonical import JsonObject

__all__ = ["LONGEST_LINE", "Line", "json_lines", "lines_at", "lines_holding"]

LONGEST_LINE = 64 << 20
"""Maximum length in bytes. Longer lines are skipped and never loaded."""
_CHUNK = 1 << 20


class Line(NamedTuple):
    """One line of a file."""

    number: int
    """Starts at 1."""
    raw: bytes
    """Includes the line ending. Empty if the line is too long."""
    value: JsonObject | None
    problem: str = ""
    """Description of the problem; empty if `value` is available."""
    offset: int = 0
    """Offset in the file in bytes."""


def json_lines(path: Path) -> Iterator[Line]:
    """Yield each line that is not blank. Raise UsageError if the file can't be read."""
    try:
        with plain(path, buffering=_CHUNK) as file:
            for number, (raw, offset) in enumerate(_lines(file), 1):
                if raw is None:
                    yield Line(number, b"", None, f"line {number} is longer than {LONGEST_LINE >> 20} MiB", offset)
                elif not raw.isspace():
                    yield _line(number, raw, offset)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error


def lines_at(path: Path, offsets: Iterable[int]) -> Iterator[Line]:
    """Yield the lines at these offsets, numbered from 1. Raise UsageError if the file can't be read."""
    try:
        with plain(path) as file:
            for number, offset in enumerate(offsets, 1):
                file.seek(offset)
                yield _line(number, file.readline(LONGEST_LINE), offset)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error


def lines_holding(path: Path, needle: bytes) -> Iterator[bytes]:
    """Yield the lines that contain these bytes, using little memory. Yield nothing if the file can't be read.

    The file is not memory-mapped: if it is truncated during the search, that would kill the process.
    """
    with suppress(OSError), plain(path, links=False) as file:
        tail = b""
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            data = tail + chunk
            end = data.rfind(b"\n") + 1
            yield from _found(data, end, needle)
            tail = data[end:] if len(data) - end <= LONGEST_LINE else b""
        yield from _found(tail, len(tail), needle)


def _found(data: bytes, end: int, needle: bytes) -> Iterator[bytes]:
    at = 0
    while (found := data.find(needle, at, end)) >= 0:
        at = data.find(b"\n", found, end) + 1 or end
        yield data[data.rfind(b"\n", 0, found) + 1 : at]


def _lines(file: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line with its ending and its offset. A line that is too long is yielded as None."""
    offset = 0
    while line := file.readline(LONGEST_LINE + 1):
        size = len(line)
        if size <= LONGEST_LINE:
            yield line, offset
        else:
            while not line.endswith(b"\n") and (line := file.readline(_CHUNK)):
                size += len(line)
            yield None, offset
        offset += size


def _line(number: int, raw: bytes, offset: int) -> Line:
    try:
        value = parsed(raw)
        if isinstance(value, dict):
            return Line(number, raw, value, "", offset)
    except ValueError:
        pass  # the problem is determined below
    if b"\x00" in raw:
        return Line(number, raw, None, f"line {number} contains NUL bytes, typically caused by a power failure", offset)
    if not raw.endswith(b"\n"):
        return Line(number, raw, None, f"the last line, line {number}, is truncated", offset)
    return Line(number, raw, None, f"line {number} is not a JSON object", offset)
