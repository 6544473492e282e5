"""A JSON file as its pieces, each with its own bytes: what is broken or cut off in one place costs nothing in another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.pieces import MARK, elements, members, parsed, past, whole
from moot.types.canonical import Json, JsonObject

__all__ = ["LARGEST", "Document", "Element", "document", "sketch"]

LARGEST = 1 << 30
"""Bytes of a file that is held at once."""


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
        start = past(data, len(MARK) if data.startswith(MARK) else 0)
        self.is_object = data[start : start + 1] == b"{"
        """Whether it begins as one."""
        end = start + 1
        for span in members(data, start):
            self._spans.setdefault(span.name, (span.begin, span.end))
            end = span.end
        end = past(data, end)
        self.whole = self.is_object and data[end : end + 1] == b"}"
        """Whether it ends behind the last value that can be read."""

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
            return parsed(self.raw(name))
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
        for piece in elements(self.data, self._spans[name][0]) if name in self._spans else ():
            value = piece.value if isinstance(piece.value, dict) else None
            problem = piece.problem or ("" if value is not None else f"element {piece.number} is no JSON object")
            yield Element(piece.number, piece.raw, piece.lead, value, problem)


def document(path: Path) -> Document:
    """Raises UsageError for what can't be read, and for what is no JSON object."""
    found = Document(whole(path, LARGEST))
    if not found.is_object:
        raise UsageError(f"{str(path)!r} is no JSON object")
    return found


def sketch(head: bytes, name: str = "") -> Document:
    """What the beginning of a file says of the object, or of the object under a name in it: for looking whose it is."""
    found = Document(head)
    return Document(found.raw(name)) if name else found
