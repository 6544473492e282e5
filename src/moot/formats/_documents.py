"""Shared code of the plain formats: messages in a JSON array, in an object's `messages`, or in JSON Lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from moot.errors import UsageError
from moot.formats._source.fields import items, milliseconds, obj, objects, text
from moot.formats._source.lines import Line, json_lines
from moot.formats._source.pieces import array, beginning, bytes_of, member, parsed, whole
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedFacts, ImportedRecord

__all__ = ["Document", "Glance", "Record", "broken", "documents", "facts_of", "glance"]

_HEAD = 64 << 10


class Record(NamedTuple):
    """One message of a file. `value` is None if it can't be parsed."""

    raw: bytes
    value: JsonObject | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One conversation of a file."""

    id: str
    """The file's own id, or a hash of its bytes."""
    records: Iterator[Record]
    about: JsonObject = field(default_factory=dict[str, Json])
    """Fields next to the messages."""
    around: bytes = b""
    """Raw bytes of the document without its messages."""


class Glance(NamedTuple):
    """The beginning of a file: its fields and its first messages."""

    about: JsonObject
    messages: list[JsonObject]


def glance(head: bytes) -> Glance | None:
    """Return the fields and the first messages at the beginning of a file, or None if it has none of the known shapes."""
    lines = _lines(head)
    value: Json = list[Json](lines) if len(lines) > 1 else (lines[0] if lines else beginning(head))
    if isinstance(value, dict):
        return Glance(value, objects(value, "messages"))
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return None
    if value and lines and "messages" in lines[0]:
        return Glance(lines[0], objects(lines[0], "messages"))
    return Glance({}, objects({"all": value}, "all"))


def documents(path: Path) -> Iterator[Document]:
    """Yield the conversations of a file. Raise UsageError if it has none of the known shapes."""
    head = next(bytes_of(path), b"")[:_HEAD]
    lines = _lines(head)
    if lines and "messages" in lines[0]:
        yield from _each_line(path)
    elif len(lines) > 1:
        yield Document(_digest(path), _of_lines(path))
    elif isinstance(value := beginning(head), list):
        pieces = ((piece.raw, piece.value, piece.problem) for piece in array(bytes_of(path)))
        yield Document(_digest(path), (_record(*piece) for piece in pieces))
    elif isinstance(value, dict):
        yield _object(path)
    else:
        raise UsageError(f"No messages in {str(path)!r}. Expected a JSON array of messages, an object with 'messages', or JSON Lines.")


def facts_of(about: JsonObject) -> ImportedFacts:
    """Return title, model and creation time from the fields next to the messages."""
    created = milliseconds(about, "created_at") or milliseconds(about, "created")
    return ImportedFacts(title=text(about, "title"), model=text(about, "model"), created_at=created)


def broken(record: Record) -> ImportedRecord:
    """Return an unreadable message as a record that keeps its raw bytes."""
    return ImportedRecord(record.raw, record.value, record.problem or "not a message")


def _lines(head: bytes) -> list[JsonObject]:
    """Return the objects in the complete lines of `head`, or nothing if the first line is not an object."""
    found: list[JsonObject] = []
    for line in head.splitlines(keepends=True):
        if not line.endswith(b"\n") and found and len(head) >= _HEAD:
            break
        if not line.strip():
            continue
        value: Json = None
        with suppress(ValueError):
            value = parsed(line)
        if isinstance(value, dict):
            found.append(value)
        elif not found:
            return []
    return found


def _each_line(path: Path) -> Iterator[Document]:
    seen: set[str] = set()
    for line in json_lines(path):
        value = line.value or {}
        id = text(value, "id") or hashlib.sha256(line.raw).hexdigest()
        while id in seen:
            id += f"#{line.number}"
        seen.add(id)
        if line.value is None:
            yield Document(id, iter([Record(line.raw, None, line.problem)]))
        else:
            yield _within(id, line.raw, line.value)


def _of_lines(path: Path) -> Iterator[Record]:
    return (_of_line(line) for line in json_lines(path))


def _of_line(line: Line) -> Record:
    return Record(line.raw, line.value, line.problem)


def _record(raw: bytes, value: Json, problem: str) -> Record:
    if isinstance(value, dict):
        return Record(raw, value, problem)
    return Record(raw, None, problem or "not a JSON object")


def _object(path: Path) -> Document:
    data = whole(path)
    try:
        value = parsed(data)
    except ValueError:
        return _damaged(data)
    return _within(text(value, "id") or hashlib.sha256(data).hexdigest(), data, obj(value))


def _damaged(data: bytes) -> Document:
    """Return the readable messages of a truncated or damaged document."""
    span = member(data, "messages")
    id = hashlib.sha256(data).hexdigest()
    if span is None:
        return Document(id, iter([Record(data, None, "the document is damaged")]))
    found = [_record(piece.raw, piece.value, piece.problem) for piece in array([data[span.begin :]])]
    around = Record(data[: span.begin], None, "the document is damaged")
    return Document(id, iter([*found, around]))


def _within(id: str, data: bytes, value: JsonObject) -> Document:
    span = member(data, "messages")
    about = {name: member for name, member in value.items() if name != "messages"}
    if span is None or not items(value, "messages"):
        return Document(id, iter(()), about, data)
    found = (_record(piece.raw, piece.value, piece.problem) for piece in array([data[span.begin : span.end]]))
    return Document(id, found, about, data[: span.begin] + data[span.end :])


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for piece in bytes_of(path):
        digest.update(piece)
    return digest.hexdigest()
