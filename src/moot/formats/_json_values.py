"""The values in a JSON text, each with the very bytes it stands in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from moot.errors import UsageError
from moot.types.canonical import Json

__all__ = ["LARGEST", "Value", "elements", "members", "text_of_file"]

LARGEST = 1 << 30
"""Bytes of a file that is one JSON value, and so is held whole."""

_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


class Value(NamedTuple):
    """A value where it stands."""

    name: str
    """Its key in an object; empty in an array."""
    begin: int
    end: int
    value: Json


def text_of_file(path: Path) -> str:
    """Raises UsageError for what can't be read, is no text or too large to be one value."""
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{str(path)!r} is larger than {LARGEST >> 30} GiB, too large for one JSON document")
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is no text: {error}") from error


def elements(text: str, begin: int = 0) -> Iterator[Value]:
    """The elements of the array that begins there. Raises ValueError, after those that could be read."""
    at = _after(text, begin, "[")
    if _peek(text, at) == "]":
        return
    while True:
        begin = _skip(text, at)
        value, end = _decoded(text, begin)
        yield Value("", begin, end, value)
        at, ended = _next(text, end, "]")
        if ended:
            return


def members(text: str, begin: int = 0) -> Iterator[Value]:
    """The members of the object that begins there. Raises ValueError, after those that could be read."""
    at = _after(text, begin, "{")
    if _peek(text, at) == "}":
        return
    while True:
        name, end = _decoded(text, _skip(text, at))
        if not isinstance(name, str):
            raise ValueError("a key that is no string")
        begin = _skip(text, _after(text, end, ":"))
        value, end = _decoded(text, begin)
        yield Value(name, begin, end, value)
        at, ended = _next(text, end, "}")
        if ended:
            return


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _peek(text: str, at: int) -> str:
    at = _skip(text, at)
    return text[at : at + 1]


def _after(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"expected {sign!r} at character {at}")
    return at + 1


def _next(text: str, at: int, close: str) -> tuple[int, bool]:
    """Where the next one begins, or that there is none."""
    at = _skip(text, at)
    sign = text[at : at + 1]
    if sign not in (",", close) or not sign:
        raise ValueError(f"expected ',' or {close!r} at character {at}")
    return at + 1, sign == close
