"""JSON lines of any size, one at a time, with what is wrong about each."""

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
"""Bytes; what is longer is passed over and never held."""
_CHUNK = 1 << 20


class Line(NamedTuple):
    """One line of a source."""

    number: int
    """From 1."""
    raw: bytes
    """With its line end; empty when it is too long to be held."""
    value: JsonObject | None
    problem: str = ""
    """What is wrong, and in which line; empty = `value` is there."""
    offset: int = 0
    """Bytes of the file before it."""


def json_lines(path: Path) -> Iterator[Line]:
    """Each line that is not blank. Raises UsageError when the file can't be read."""
    try:
        with plain(path, buffering=_CHUNK) as file:
            for number, (raw, offset) in enumerate(_lines(file), 1):
                if raw is None:
                    yield Line(number, b"", None, f"line {number} is longer than {LONGEST_LINE >> 20} MiB", offset)
                elif not raw.isspace():
                    yield _line(number, raw, offset)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error


def lines_at(path: Path, offsets: Iterable[int]) -> Iterator[Line]:
    """The lines that begin at these places of the file, numbered from 1. Raises UsageError when the file can't be read."""
    try:
        with plain(path) as file:
            for number, offset in enumerate(offsets, 1):
                file.seek(offset)
                yield _line(number, file.readline(LONGEST_LINE), offset)
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error


def lines_holding(path: Path, wanted: bytes) -> Iterator[bytes]:
    """Lines with these bytes in them, as a search finds them that holds little; none where there is no regular file to be read.

    The file is never mapped: one that is cut while it is searched would end the process.
    """
    with suppress(OSError), plain(path, links=False) as file:
        tail = b""
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            data = tail + chunk
            end = data.rfind(b"\n") + 1
            yield from _found(data, end, wanted)
            tail = data[end:] if len(data) - end <= LONGEST_LINE else b""
        yield from _found(tail, len(tail), wanted)


def _found(data: bytes, end: int, wanted: bytes) -> Iterator[bytes]:
    at = 0
    while (found := data.find(wanted, at, end)) >= 0:
        at = data.find(b"\n", found, end) + 1 or end
        yield data[data.rfind(b"\n", 0, found) + 1 : at]


def _lines(file: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """Lines with their ends, and where they begin; None for one that is too long."""
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
        pass  # what is wrong with it is looked for below
    if b"\x00" in raw:
        return Line(number, raw, None, f"line {number} has NUL bytes, as a loss of power leaves them", offset)
    if not raw.endswith(b"\n"):
        return Line(number, raw, None, f"line {number}, the last, is cut off", offset)
    return Line(number, raw, None, f"line {number} is no JSON object", offset)
