"""A JSON file as its pieces, each with its own bytes: what is broken or cut off in one place costs nothing in another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.plain import plain
from moot.types.canonical import Json, JsonObject, dumps, loads

__all__ = ["LARGEST", "Document", "Element", "document", "lenient", "sketch"]

LARGEST = 1 << 30
"""Bytes of a file that is held at once."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},:]', re.DOTALL)
_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Element:
    """One value of an array."""

    number: int
    """From 1."""
    raw: bytes
    lead: bytes
    """What stands between it and the one before."""
    value: JsonObject | None
    problem: str = ""
    """What is wrong with it and where; empty = `value` is there."""


class Document:
    """A JSON object in bytes that may be cut off anywhere."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._spans: dict[str, tuple[int, int]] = {}
        start = _past_space(data, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
        self.is_object = data[start : start + 1] == b"{"
        """Whether it begins as one."""
        self.whole = False
        """Whether it ends as one."""
        if self.is_object:
            self._look(start)

    def _look(self, start: int) -> None:
        for begin, end in _regions(self.data, start):
            if begin < 0:
                self.whole = True
                continue
            match = _TOKEN.match(self.data, begin)
            colon = _past_space(self.data, match.end()) if match is not None else begin
            name = _parsed(match[0]) if match is not None and self.data[colon : colon + 1] == b":" else None
            if isinstance(name, str):
                self._spans.setdefault(name, (_past_space(self.data, colon + 1), end))

    def __contains__(self, name: str) -> bool:
        return name in self._spans

    def names(self) -> list[str]:
        """Its keys, in their order."""
        return list(self._spans)

    def raw(self, name: str) -> bytes:
        """The bytes of a value; empty when it is not there."""
        start, end = self._spans.get(name, (0, 0))
        return self.data[start:end]

    def value(self, name: str) -> Json:
        """None also for what is not there, or can't be read."""
        try:
            return lenient(self.raw(name))
        except ValueError:
            return None

    def text(self, name: str) -> str:
        """Empty for what is no text."""
        value = self.value(name)
        return value if isinstance(value, str) else ""

    def rest(self, name: str) -> JsonObject:
        """All values but that one."""
        return {other: self.value(other) for other in self._spans if other != name}

    def elements(self, name: str) -> Iterator[Element]:
        """The objects in an array, in their order; none when it is no array."""
        start, _ = self._spans.get(name, (0, 0))
        if self.data[start : start + 1] != b"[":
            return
        before = start + 1
        for number, (begin, end) in enumerate(_regions(self.data, start), 1):
            if begin >= 0:
                yield _element(number, self.data[begin:end], self.data[before:begin], cut=end == len(self.data))
                before = end


def document(path: Path) -> Document:
    """Raises UsageError for what can't be read, and for what is no JSON object."""
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise UsageError(f"{str(path)!r} has {size >> 20:,} MiB; a JSON file of more than {LARGEST >> 20:,} MiB is not read")
        with plain(path) as file:
            found = Document(file.read())
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error
    if not found.is_object:
        raise UsageError(f"{str(path)!r} is no JSON object")
    return found


def sketch(head: bytes, name: str = "") -> Document:
    """What the beginning of a file says of the object, or of the object under a name in it: for looking whose it is."""
    found = Document(head)
    return Document(found.raw(name)) if name else found


def lenient(data: bytes | str) -> Json:
    """A JSON value, also with what JavaScript writes and strict readers refuse: half surrogates become U+FFFD. Raises ValueError."""
    try:
        return loads(data)
    except ValueError:
        pass
    try:
        return loads(dumps(json.loads(data)))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _element(number: int, raw: bytes, lead: bytes, *, cut: bool) -> Element:
    try:
        value = lenient(raw)
    except ValueError:
        return Element(number, raw, lead, None, f"entry {number} is {'cut off' if cut else 'no JSON'}")
    if not isinstance(value, dict):
        return Element(number, raw, lead, None, f"entry {number} is no JSON object")
    return Element(number, raw, lead, value)


def _parsed(raw: bytes) -> Json:
    try:
        return lenient(raw)
    except ValueError:
        return None


def _past_space(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _SPACE:
        at += 1
    return at


def _regions(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """What stands between the commas of the array or object that opens at `start`; at last (-1, -1) when it is closed."""
    depth, begin = 0, start + 1
    for match in _TOKEN.finditer(data, start):
        sign = data[match.start()]
        if sign in b"[{":
            depth += 1
        elif sign in b"]}":
            depth -= 1
        if depth == 0 or (depth == 1 and sign == 0x2C):
            yield from _region(data, begin, match.start())
            begin = match.end()
        if depth == 0:
            yield -1, -1
            return
    yield from _region(data, begin, len(data))


def _region(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    begin = _past_space(data, begin)
    while end > begin and data[end - 1] in _SPACE:
        end -= 1
    if end > begin:
        yield begin, end
