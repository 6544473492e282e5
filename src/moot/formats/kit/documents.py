"""Readers for JSON Lines files of any size, and for messages in a JSON array, in the `messages` of an object, or in JSON Lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

from moot.errors import UsageError
from moot.formats.kit.fields import at, items, milliseconds, obj, objects, text
from moot.formats.kit.files import HEAD, open_regular
from moot.formats.kit.json import ArrayItem, array_items, member, parse_json, parse_prefix, read_chunks, read_document
from moot.types.canonical import Json, JsonObject, loads_object
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedRecord

LONGEST_LINE = 64 << 20
"""Maximum length of a line in bytes. Longer lines are skipped and never loaded."""
_CHUNK = 1 << 20


class Line(NamedTuple):
    """One line of a file."""

    number: int
    """Line number, starting at 1."""
    raw: bytes
    """The line with its line ending. Empty if the line is too long."""
    value: JsonObject | None
    problem: str = ""
    """The reason why the line can't be parsed; empty if `value` is available."""
    offset: int = 0
    """Offset of the line in the file, in bytes."""


def json_lines(path: Path) -> Iterator[Line]:
    """Yield each line that is not blank. Raise UsageError if the file can't be read."""
    try:
        with open_regular(path, buffering=_CHUNK) as file:
            yield from lines_in(file)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error


def lines_in(file: BinaryIO) -> Iterator[Line]:
    """Yield each line of an open file that is not blank. Raise OSError if the file can't be read."""
    for number, (raw, offset) in enumerate(_lines(file), 1):
        if raw is not None and (value := _object(raw)) is not None:
            yield Line(number, raw, value, "", offset)
        elif raw is None:
            yield _too_long(number, offset)
        elif not raw.isspace():
            yield _line(number, raw, offset)


class GrowingFile:
    """A file to which a program appends lines. Each reading continues where the previous one ended."""

    def __init__(self) -> None:
        self.position = 0
        """Number of bytes that were read."""
        self.tail: Line | None = None
        """The last line, if it is incomplete. It is not part of the bytes that were read."""
        self.is_continuable = True
        """False if the next reading can't continue, but must start at the beginning of the file."""
        self._count = 0
        self._digest = hashlib.blake2b()

    def has_only_grown(self, file: BinaryIO) -> bool:
        """Return whether the file still starts with the bytes that were read, and move to the first byte after them.

        All these bytes are read, because a program may rewrite a file without changing its inode, and make it longer.
        """
        left, found = self.position, hashlib.blake2b()
        while left and (chunk := file.read(min(left, _CHUNK))):
            found.update(chunk)
            left -= len(chunk)
        return self.is_continuable and not left and found.digest() == self._digest.digest()

    def lines(self, file: BinaryIO) -> Iterator[Line]:
        """Yield each further line that is complete and not blank, like `lines_in`. The file must be at the position."""
        begin, self.tail = self.position, None
        for raw, offset in _lines(file):
            number = self._count + 1
            line = _too_long(number, begin + offset) if raw is None else _line(number, raw, begin + offset)
            if raw is None or not raw.endswith(b"\n"):
                self.is_continuable = self.is_continuable and raw is not None and line.value is None
                if self.is_continuable:
                    self.tail = None if line.raw.isspace() else line
                    return
            self._count, self.position = number, begin + offset + len(line.raw)
            self._digest.update(line.raw)
            if not line.raw.isspace():
                yield line


class LineReader(Protocol):
    """Reader that converts the lines of a session. It can continue with lines that are appended later."""

    @property
    def size(self) -> int:
        """Number of bytes that the reader keeps in memory, approximately."""
        ...

    def take(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """Read lines, and yield the entries that further lines can't change."""
        ...

    def rest(self, tail: Line | None = None) -> Iterator[Entry]:
        """Yield the entries that further lines may change: messages that can still grow, and facts. The reader's state stays the same.

        `tail` is the last line of the file if it is incomplete. Its record comes first.
        """
        ...


class GrowingSession(NamedTuple):
    """A conversation in a file to which lines are appended."""

    conversation: ImportedConversation
    """The conversation without entries."""
    reader: LineReader
    others: Callable[[], Iterator[ImportedConversation]] = lambda: iter(())
    """Return further conversations in the lines that the reader has taken."""
    fits: Callable[[Iterator[Line]], bool] = lambda lines: True
    """Return whether the reader can continue with these lines. If not, the whole file must be read again."""


@runtime_checkable
class Continuable(Protocol):
    """Optional capability of a format: if lines were appended to a source, only these lines have to be read."""

    def growing(self, path: Path) -> GrowingSession | None:
        """Return the source's conversation, or None if the source must always be read as a whole. The entries are the same as in `read`.

        Raise UsageError if nothing in the source has this format.
        """
        ...


def lines_at(path: Path, offsets: Iterable[int]) -> Iterator[Line]:
    """Yield the lines at the given byte offsets, numbered from 1. Raise UsageError if the file can't be read."""
    try:
        with open_regular(path) as file:
            for number, offset in enumerate(offsets, 1):
                file.seek(offset)
                yield _line(number, file.readline(LONGEST_LINE), offset)
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error


def any_line(head: bytes, is_own: Callable[[JsonObject], bool], marks: tuple[bytes, ...], count: int) -> bool:
    """Return whether one of the first `count` lines belongs to a format,
    or `head` is part of a single long line and contains all `marks`.
    """
    lines = head.split(b"\n")
    if len(lines) == 1 and len(head) > 1000 and head.startswith(b"{") and all(mark in head for mark in marks):
        return True
    for line in lines[:count]:
        with suppress(ValueError):
            if line.startswith(b"{") and is_own(loads_object(line)):
                return True
    return False


def lines_containing(path: Path, needle: bytes) -> Iterator[bytes]:
    """Yield the lines that contain these bytes, using little memory. Yield nothing if the file can't be read.

    The file is not memory-mapped, because truncating a mapped file during the search would kill the process.
    """
    with suppress(OSError), open_regular(path, links=False) as file:
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
    """Yield each line, including its line ending, with its offset. For a line that is too long, yield None instead of the line."""
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


def _object(raw: bytes) -> JsonObject | None:
    try:
        value = parse_json(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _too_long(number: int, offset: int) -> Line:
    return Line(number, b"", None, f"line {number} is longer than {LONGEST_LINE >> 20} MiB", offset)


def _line(number: int, raw: bytes, offset: int) -> Line:
    if (value := _object(raw)) is not None:
        return Line(number, raw, value, "", offset)
    if b"\x00" in raw:
        return Line(number, raw, None, f"line {number} contains NUL bytes, typically caused by a power failure", offset)
    if not raw.endswith(b"\n"):
        return Line(number, raw, None, f"the last line, line {number}, is truncated", offset)
    return Line(number, raw, None, f"line {number} is not a JSON object", offset)


class Record(NamedTuple):
    """One message of a file. `value` is None if it can't be parsed."""

    raw: bytes
    value: JsonObject | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One conversation of a file."""

    id: str
    """Id of the conversation in the file, or a hash of the bytes if it has no id."""
    records: Iterator[Record]
    about: JsonObject = field(default_factory=dict[str, Json])
    """Fields of the object that contains the messages, except the messages themselves."""
    around: bytes = b""
    """Raw bytes of the document without its messages."""


class Peek(NamedTuple):
    """The content at the beginning of a file: its first messages, and the fields of the object that contains them."""

    about: JsonObject
    messages: list[JsonObject]


def peek(head: bytes) -> Peek | None:
    """Return the content at the beginning of a file, or None if the structure of the file is not supported."""
    lines = _complete_lines(head)
    value: Json = list[Json](lines) if len(lines) > 1 else (lines[0] if lines else parse_prefix(head))
    if isinstance(value, dict):
        return Peek(value, objects(value, "messages"))
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return None
    if value and lines and "messages" in lines[0]:
        return Peek(lines[0], objects(lines[0], "messages"))
    return Peek({}, objects(value))


def documents(path: Path) -> Iterator[Document]:
    """Yield the conversations of a file. Raise UsageError if its structure is not supported."""
    head = next(read_chunks(path), b"")[:HEAD]
    lines = _complete_lines(head)
    if lines and "messages" in lines[0]:
        yield from _each_line(path)
    elif len(lines) > 1:
        yield Document(_digest(path), (Record(line.raw, line.value, line.problem) for line in json_lines(path)))
    elif isinstance(value := parse_prefix(head), list):
        yield Document(_digest(path), map(_record, array_items(read_chunks(path))))
    elif isinstance(value, dict):
        data = read_document(path)
        try:
            found = parse_json(data)
        except ValueError:
            yield _damaged(data)
        else:
            yield _within(text(found, "id") or hashlib.sha256(data).hexdigest(), data, obj(found))
    else:
        raise UsageError(f"No messages in {str(path)!r}. Expected a JSON array of messages, an object with 'messages', or JSON Lines.")


def missing_messages(value: JsonObject, *names: str, kind: type = list) -> list[ImportedRecord]:
    """Return a record with a problem if the value at the path `names`, where messages are expected, does not have the type `kind`."""
    return [] if isinstance(at(value, *names), kind) else [ImportedRecord(b"", problem=f"{'.'.join(names)!r} contains no messages")]


def facts_of(about: JsonObject) -> ImportedFacts:
    """Return the title, model and creation time from the fields of the object that contains the messages."""
    created = milliseconds(about, "created_at") or milliseconds(about, "created")
    return ImportedFacts(title=text(about, "title"), model=text(about, "model"), created_at=created)


def unreadable(record: Record) -> ImportedRecord:
    """Convert an unreadable message to a record with its raw bytes and a description of the problem."""
    return ImportedRecord(record.raw, record.value, record.problem or "not a message")


def _complete_lines(head: bytes) -> list[JsonObject]:
    """Return the objects in the complete lines of `head`, or nothing if the first line is not an object."""
    found: list[JsonObject] = []
    for line in head.splitlines(keepends=True):
        if not line.endswith(b"\n") and found and len(head) >= HEAD:
            break
        if not line.strip():
            continue
        value: Json = None
        with suppress(ValueError):
            value = parse_json(line)
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


def _record(piece: ArrayItem) -> Record:
    if isinstance(piece.value, dict):
        return Record(piece.raw, piece.value, piece.problem)
    return Record(piece.raw, None, piece.problem or "not a JSON object")


def _damaged(data: bytes) -> Document:
    """Return the readable messages of a truncated or damaged document."""
    span = member(data, "messages")
    id = hashlib.sha256(data).hexdigest()
    if span is None:
        return Document(id, iter([Record(data, None, "the document is damaged")]))
    found = map(_record, array_items([data[span.begin :]]))
    around = Record(data[: span.begin], None, "the document is damaged")
    return Document(id, iter([*found, around]))


def _within(id: str, data: bytes, value: JsonObject) -> Document:
    span = member(data, "messages")
    about = {name: member for name, member in value.items() if name != "messages"}
    if span is None or not items(value, "messages"):
        known = value.get("messages") in (None, [])
        return Document(id, iter(() if known else [Record(data, None, "'messages' is not a list")]), about, data)
    found = map(_record, array_items([data[span.begin : span.end]]))
    return Document(id, found, about, data[: span.begin] + data[span.end :])


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for piece in read_chunks(path):
        digest.update(piece)
    return digest.hexdigest()
