"""Incremental JSON parser: yields array elements one at a time, returns the exact bytes of values, and reads truncated objects."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.fields import text
from moot.formats.kit.files import open_regular
from moot.types.canonical import Json, JsonObject, dumps, loads

MAX_ELEMENT = 64 << 20
"""Maximum size of an array element, in bytes. Larger elements are skipped and never loaded."""
_DOCUMENT = 256 << 20
"""Default maximum size of a document to load into memory, in bytes."""
_CHUNK = 1 << 20
_DEEPEST = 200
"""Maximum nesting depth of a truncated document that `parse_prefix` can read."""
_FLAT = rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+'
"""Matches text without brackets, skipping whole strings."""
_DEEP = re.compile(rb"%b(?:(?:\{%b\}|\[%b\])%b)*+([\"\[\]{}])" % ((_FLAT,) * 4), re.DOTALL)
"""Matches up to the next relevant token of a value: a bracket that contains others, or the quote of an unterminated string."""
_REST = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
"""Matches the rest of a string."""
_BETWEEN = re.compile(rb"[\s,]*")
_SCALAR = re.compile(rb'[^\s,\[\]{}"]+')
_KEY = re.compile(rb'[\s,]*("(?:[^"\\]++|\\.)*+")\s*:\s*', re.DOTALL)
_CLOSES = {ord("["): b"]", ord("{"): b"}"}
MARK = b"\xef\xbb\xbf"
"""The byte order mark with which some programs start a file."""


@dataclass(frozen=True, slots=True)
class ArrayItem:
    """One element of an array."""

    number: int
    """Position in the array, starting at 1."""
    raw: bytes
    """Bytes of the element. Empty if the element is too large."""
    value: Json
    problem: str = ""
    """Description of the problem; empty if `value` is available."""
    lead: bytes = b""
    """Bytes between this element and the one before it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A member of an object, and the position of its value."""

    name: str
    begin: int
    end: int


def parse_json(data: bytes | str) -> Json:
    """Parse any JSON value. Unpaired surrogates, left by programs that truncate text, become U+FFFD. Raise ValueError for invalid JSON."""
    try:
        return loads(data)
    except ValueError:
        if not isinstance(data, str) and b"\\u" not in data:
            raise
    try:
        return loads(dumps(json.loads(data)))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def json_value(written: Json) -> Json:
    """Parse JSON in a string, such as a database column or tool arguments. Text that is not JSON is returned unchanged."""
    try:
        return parse_json(written) if isinstance(written, str) and written else written
    except ValueError:
        return written


def json_container(written: Json) -> Json:
    """Parse JSON in a string only if it is an object, an array or a string."""
    return json_value(written) if isinstance(written, str) and written[:1] in ("{", "[", '"') else written


def json_object(written: Json) -> JsonObject:
    """Parse a JSON object in a string. Return an empty object if the string contains none."""
    value = json_value(written)
    return value if isinstance(value, dict) else {}


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in chunks. Raise UsageError if it can't be read."""
    try:
        with open_regular(path) as file:
            while data := file.read(_CHUNK):
                yield data
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error


def read_document(path: Path, largest: int = _DOCUMENT) -> bytes:
    """Return a document without its byte order mark. Raise UsageError if it can't be read or is too large."""
    pieces: list[bytes] = []
    size = 0
    for piece in read_chunks(path):
        size += len(piece)
        if size > largest:
            raise UsageError(f"{str(path)!r} is a single JSON value of more than {largest >> 20:,} MiB.", fix="Split the file.")
        pieces.append(piece)
    return b"".join(pieces).removeprefix(MARK)


def array_items(chunks: Iterable[bytes]) -> Iterator[ArrayItem]:
    """Yield the elements of the array at the beginning of the data, one at a time. Yield nothing if there is no array."""
    scanner = _Scanner(iter(chunks))
    scanner.more()
    scanner.data = scanner.data.removeprefix(MARK).lstrip()
    if not scanner.data.startswith(b"["):
        return
    scanner.at = 1
    yield from _elements(scanner)


def elements(data: bytes, begin: int = 0) -> Iterator[ArrayItem]:
    """Yield the elements of the array that starts at position `begin`."""
    if data[begin : begin + 1] == b"[":
        yield from _elements(_Scanner(iter(()), data, begin + 1))


def _elements(scanner: _Scanner) -> Iterator[ArrayItem]:
    number, value = 0, None
    while (lead := scanner.next()) is not None:
        number += 1
        raw, problem = scanner.value()
        try:
            value = parse_json(raw) if not problem else None
        except ValueError as error:
            value, problem = None, f"is not valid JSON: {error}"
        yield ArrayItem(number, raw, value, f"element {number} {problem}" if problem else "", lead)


class _Scanner:
    """Scanner that finds the ends of values in chunked data."""

    def __init__(self, chunks: Iterator[bytes], data: bytes = b"", at: int = 0) -> None:
        self._chunks = chunks
        self.data = data
        self.at = at

    def more(self) -> bool:
        """Read more data and return whether there was any.
        The size of the buffer doubles, so that long values are not rescanned too often.
        """
        pieces, size = [self.data[self.at :]], 0
        needed = max(1, len(pieces[0]))
        while size < needed and (chunk := next(self._chunks, None)) is not None:
            pieces.append(chunk)
            size += len(chunk)
        self.data, self.at = b"".join(pieces), 0
        return size > 0

    def next(self) -> bytes | None:
        """Move to the next element and return the bytes before it. Return None at the end of the array."""
        lead = b""
        while True:
            begin, self.at = self.at, skip_separators(self.data, self.at)
            lead += self.data[begin : self.at]
            if self.at < len(self.data):
                return lead if self.data[self.at : self.at + 1] != b"]" else None
            if not self.more():
                return None

    def value(self) -> tuple[bytes, str]:
        """Return the current element and a description of its problem, if any."""
        buffered: list[bytes] = []
        depth = size = 0
        inside = False  # inside a string that is longer than the buffer
        too_large = False
        while True:
            end, depth, inside = self.ends(depth, inside)
            if depth == 0 and not inside:
                buffered.append(self.data[self.at : end])
                self.at = end
                return (b"", f"is larger than {MAX_ELEMENT >> 20} MiB") if too_large else (b"".join(buffered), "")
            buffered.append(self.data[self.at : end])
            size += end - self.at
            self.at = end
            if size > MAX_ELEMENT:
                too_large = True
                buffered.clear()
            if not self.more():
                buffered.append(self.data[self.at :])
                self.at = len(self.data)
                return (b"", "is truncated and too large to load") if too_large else (b"".join(buffered), "is truncated")

    def ends(self, depth: int, inside: bool) -> tuple[int, int, bool]:
        """Return (position, depth, whether inside a string) at the end of the value, or at the end of the buffer if the value continues."""
        at = self.at
        if inside:
            rest = _REST.match(self.data, at)
            if rest is None:
                return self._safe(at), depth, True
            at, inside = rest.end(), False
            if depth == 0:
                return at, 0, False
        if depth == 0 and self.data[at : at + 1] == b'"':
            text = _REST.match(self.data, at + 1)
            return (self._safe(at + 1), 0, True) if text is None else (text.end(), 0, False)
        if depth == 0 and self.data[at : at + 1] not in (b"[", b"{"):
            return self._scalar(at), 0, False
        end, depth = (at, depth) if depth else (at + 1, 1)
        while (token := _DEEP.match(self.data, end)) is not None:
            sign, end = token[1], token.end()
            if sign == b'"':
                return self._safe(end), depth, True
            depth += 1 if sign in b"[{" else -1
            if depth <= 0:
                return end, 0, False
        # without splitting a string
        return len(self.data) if self.data.find(b'"', end) < 0 else end, depth, False

    def _scalar(self, at: int) -> int:
        """Return the end of a number or literal, which may continue in unread data."""
        while (scalar := _SCALAR.match(self.data, at)) is not None and scalar.end() == len(self.data):
            at -= self.at
            if not self.more():
                break
        return scalar.end() if scalar else at + 1

    def _safe(self, at: int) -> int:
        """Return the end of the buffer, or the position before trailing backslashes, so that no escape sequence is split."""
        tail = len(self.data) - len(self.data.rstrip(b"\\"))
        return max(at, len(self.data) - tail)


def skip_separators(data: bytes, at: int) -> int:
    """Return the position after whitespace and commas."""
    between = _BETWEEN.match(data, at)
    return between.end() if between else at


def member(data: bytes, name: str, begin: int = 0) -> Span | None:
    """Return the first member with the name `name` in the object at position `begin`, or None."""
    return next((span for span in members(data, begin) if span.name == name), None)


def members(data: bytes, begin: int = 0) -> Iterator[Span]:
    """Yield the readable members of the object at position `begin`, or nothing if there is no object."""
    return (span for _, span in members_at(data, ("*",), begin))


def members_at(data: bytes, names: tuple[str, ...], begin: int = 0) -> Iterator[tuple[tuple[str, ...], Span]]:
    """Yield the members at a path of names, in which `*` matches any name, each with its full path. Inner members come first.

    The data is scanned only once.
    """
    return _along(data, names, begin, ())


def _along(data: bytes, names: tuple[str, ...], begin: int, above: tuple[str, ...]) -> Generator[tuple[tuple[str, ...], Span], None, int]:
    at = data.find(b"{", begin) + 1
    if at == 0 or data[begin : at - 1].strip():
        return begin
    while True:
        key = _KEY.match(data, at)
        if key is None:
            at = skip_separators(data, at)
            if at >= len(data) or data[at] in b"}":
                return min(at + 1, len(data))
            at = _end(data, at)  # damaged: valid members may follow
            continue
        name, start = _name(key[1]), key.end()
        if name is None or names[:1] not in (("*",), (name,)):
            at = _end(data, start)
            continue
        way = (*above, name)
        deeper = len(names) > 1 and data[start : start + 1] == b"{"
        at = (yield from _along(data, names[1:], start, way)) if deeper else _end(data, start)
        yield way, Span(name, start, at)


def _name(key: bytes) -> str | None:
    if b"\\" not in key:
        return key[1:-1].decode("utf-8", "replace")
    with suppress(ValueError):
        return str(parse_json(key))
    return None


def _end(data: bytes, begin: int) -> int:
    """Return the end of the value at a position, or the end of the data if the value is incomplete."""
    end, depth, inside = _Scanner(iter(()), data, begin).ends(0, False)
    return len(data) if depth or inside else end


@lru_cache(maxsize=4)
def parse_prefix(head: bytes) -> Json:
    """Parse as much as possible of a JSON document that may be truncated. Return None if it is not JSON."""
    text = head.removeprefix(MARK).strip()
    if text[:1] not in (b"[", b"{"):
        return None
    with suppress(ValueError):
        return parse_json(text)
    for closed in _closed(text):
        with suppress(ValueError):
            return parse_json(closed)
    return None


def _closed(text: bytes) -> Iterator[bytes]:
    """Yield the truncated text with open strings and brackets closed, and then the same without the last, incomplete member."""
    text = text.decode("utf-8", "ignore").encode()
    stack = bytearray()
    open_string = False
    safe = (0, b"")
    for token in re.finditer(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', text, re.DOTALL):
        sign = token[0]
        if sign == b",":
            safe = (token.start(), bytes(stack))
        elif sign in (b"[", b"{"):
            stack.append(sign[0])
            safe = (token.end(), bytes(stack))
            if len(stack) > _DEEPEST:
                return
        elif sign in (b"]", b"}"):
            if not stack:
                return
            stack.pop()
        elif sign == b'"':
            open_string = True
            break
    if open_string:
        yield re.sub(rb"\\(?:u[0-9a-fA-F]{0,3})?$", b"", text) + b'"' + _closers(stack)
    yield text + _closers(stack)
    yield text[: safe[0]] + _closers(safe[1])


def _closers(stack: bytes | bytearray) -> bytes:
    return b"".join(_CLOSES[sign] for sign in reversed(stack))


MAX_DOCUMENT = 1 << 30
"""Maximum size of a file that `load_document` loads, in bytes."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array of objects."""

    number: int
    """Position in the array, starting at 1."""
    raw: bytes
    lead: bytes
    """Bytes between this element and the one before it."""
    value: JsonObject | None
    problem: str = ""
    """Description of the problem; empty if `value` is available."""


class PartialDocument:
    """A JSON object, given as bytes that may be truncated."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._spans: dict[str, tuple[int, int]] = {}
        start = skip_separators(data, len(MARK) if data.startswith(MARK) else 0)
        self.is_object = data[start : start + 1] == b"{"
        """True if the data starts with an object."""
        end = start + 1
        for span in members(data, start):
            self._spans.setdefault(span.name, (span.begin, span.end))
            end = span.end
        end = skip_separators(data, end)
        self.whole = self.is_object and data[end : end + 1] == b"}"
        """True if the object is complete."""

    def __contains__(self, name: str) -> bool:
        return name in self._spans

    def names(self) -> list[str]:
        """Return the keys in order."""
        return list(self._spans)

    def raw(self, name: str) -> bytes:
        """Return the bytes of a value, or nothing if the value is missing."""
        start, end = self._spans.get(name, (0, 0))
        return self.data[start:end]

    def value(self, name: str) -> Json:
        """Return the value, or None if it is missing or unreadable."""
        with suppress(ValueError):
            return parse_json(self.raw(name))
        return None

    def text(self, name: str) -> str:
        """Return the value if it is a string, otherwise an empty string."""
        return text(self.value(name))

    def elements(self, name: str) -> Iterator[Element]:
        """Yield the elements of an array. Any other value except null is yielded as one element with a problem."""
        if self.raw(name) not in (b"", b"null") and not self.raw(name).startswith(b"["):
            yield Element(1, self.raw(name), b"", None, f"{name!r} is not an array")
            return
        for piece in elements(self.data, self._spans[name][0]) if name in self._spans else ():
            value = piece.value if isinstance(piece.value, dict) else None
            problem = piece.problem or ("" if value is not None else f"element {piece.number} is not a JSON object")
            yield Element(piece.number, piece.raw, piece.lead, value, problem)


def load_document(path: Path) -> PartialDocument:
    """Load a JSON object. Raise UsageError if the file can't be read or does not contain an object."""
    found = PartialDocument(read_document(path, MAX_DOCUMENT))
    if not found.is_object:
        raise UsageError(f"{str(path)!r} is not a JSON object.")
    return found


def partial_document(head: bytes, name: str = "") -> PartialDocument:
    """Parse the beginning of a file as an object, or return the object in its member `name`. This is used to recognize formats."""
    found = PartialDocument(head)
    return PartialDocument(found.raw(name)) if name else found
