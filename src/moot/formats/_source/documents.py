"""JSON objects that may be truncated: each member with its own bytes. Damage in one place does not affect others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.pieces import MARK, elements, members, parsed, past, whole
from moot.types.canonical import Json, JsonObject

__all__ = ["LARGEST", "Document", "Element", "document", "sketch"]

LARGEST = 1 << 30
"""Maximum size in bytes of a file that is loaded into memory."""


@dataclass(frozen=True, slots=True)
class Element:
    """One object of an array."""

    number: int
    """Starts at 1."""
    raw: bytes
    lead: bytes
    """Bytes between this element and the one before it."""
    value: JsonObject | None
    problem: str = ""
    """Description of the problem; empty if `value` is available."""


class Document:
    """A JSON object in bytes that may be truncated."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._spans: dict[str, tuple[int, int]] = {}
        start = past(data, len(MARK) if data.startswith(MARK) else 0)
        self.is_object = data[start : start + 1] == b"{"
        """True if the data starts like an object."""
        end = start + 1
        for span in members(data, start):
            self._spans.setdefault(span.name, (span.begin, span.end))
            end = span.end
        end = past(data, end)
        self.whole = self.is_object and data[end : end + 1] == b"}"
        """True if the object is complete."""

    def __contains__(self, name: str) -> bool:
        return name in self._spans

    def names(self) -> list[str]:
        """Return the keys in order."""
        return list(self._spans)

    def raw(self, name: str) -> bytes:
        """Return the bytes of a value, or nothing if it is missing."""
        start, end = self._spans.get(name, (0, 0))
        return self.data[start:end]

    def value(self, name: str) -> Json:
        """Return the value, or None if it is missing or unreadable."""
        try:
            return parsed(self.raw(name))
        except ValueError:
            return None

    def text(self, name: str) -> str:
        """Return a string value, or an empty string."""
        value = self.value(name)
        return value if isinstance(value, str) else ""

    def rest(self, name: str) -> JsonObject:
        """Return all values except one."""
        return {other: self.value(other) for other in self._spans if other != name}

    def elements(self, name: str) -> Iterator[Element]:
        """Yield the elements of an array, or nothing if the value is not an array."""
        for piece in elements(self.data, self._spans[name][0]) if name in self._spans else ():
            value = piece.value if isinstance(piece.value, dict) else None
            problem = piece.problem or ("" if value is not None else f"element {piece.number} is not a JSON object")
            yield Element(piece.number, piece.raw, piece.lead, value, problem)


def document(path: Path) -> Document:
    """Load a JSON object. Raise UsageError if the file can't be read or is not an object."""
    found = Document(whole(path, LARGEST))
    if not found.is_object:
        raise UsageError(f"{str(path)!r} is not a JSON object.")
    return found


def sketch(head: bytes, name: str = "") -> Document:
    """Parse the beginning of a file as an object, or as the object in its member `name`. Used to recognize formats."""
    found = Document(head)
    return Document(found.raw(name)) if name else found
