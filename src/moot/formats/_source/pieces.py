"""JSON in pieces: the elements of an array of any size one at a time, and the very bytes that a value stands in."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.plain import plain
from moot.types.canonical import Json, JsonObject, dumps, loads

__all__ = [
    "LARGEST",
    "MARK",
    "Piece",
    "Span",
    "along",
    "array",
    "beginning",
    "bytes_of",
    "elements",
    "member",
    "members",
    "object_in",
    "parsed",
    "past",
    "value_in",
    "whole",
]

LARGEST = 64 << 20
"""Bytes of one element; what is larger is passed over and never held."""
_DOCUMENT = 256 << 20
"""Bytes of a document that is read at once."""
_CHUNK = 1 << 20
_DEEPEST = 200
"""Brackets in brackets at the beginning of a document: no conversation has more."""
_FLAT = rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+'
"""Anything without a bracket, whole strings passed over."""
_DEEP = re.compile(rb"%b(?:(?:\{%b\}|\[%b\])%b)*+([\"\[\]{}])" % ((_FLAT,) * 4), re.DOTALL)
"""Up to what matters inside a value: a bracket with others inside it, or the quote of a string that is cut off."""
_REST = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
"""What is left of a string that began before."""
_BETWEEN = re.compile(rb"[\s,]*")
_SCALAR = re.compile(rb'[^\s,\[\]{}"]+')
_KEY = re.compile(rb'[\s,]*("(?:[^"\\]++|\\.)*+")\s*:\s*', re.DOTALL)
_CLOSES = {ord("["): b"]", ord("{"): b"}"}
MARK = b"\xef\xbb\xbf"
"""A byte order mark, which some programs write first."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An element of an array."""

    number: int
    """From 1."""
    raw: bytes
    """Empty when it is too large to be held."""
    value: Json
    problem: str = ""
    """What is wrong with it; empty = `value` is there."""
    lead: bytes = b""
    """What stands between it and the one before."""


@dataclass(frozen=True, slots=True)
class Span:
    """A member of an object, and where its value stands."""

    name: str
    begin: int
    end: int


def parsed(data: bytes | str) -> Json:
    """Any JSON value; half a surrogate pair, as programs that cut text leave it, becomes U+FFFD. Raises ValueError."""
    try:
        return loads(data)
    except ValueError:
        if not isinstance(data, str) and b"\\u" not in data:
            raise
    try:
        return loads(dumps(json.loads(data)))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def value_in(written: Json) -> Json:
    """What a text holds as JSON, as columns and arguments do; what is no JSON in a text stays what it is."""
    try:
        return parsed(written) if isinstance(written, str) and written else written
    except ValueError:
        return written


def object_in(written: Json) -> JsonObject:
    """The object that a text holds as JSON; an empty one when it holds none."""
    value = value_in(written)
    return value if isinstance(value, dict) else {}


def bytes_of(path: Path) -> Iterator[bytes]:
    """A file piece by piece. Raises UsageError."""
    try:
        with plain(path) as file:
            while data := file.read(_CHUNK):
                yield data
    except OSError as error:
        raise UsageError(f"can't read {str(path)!r}: {error.strerror}") from error


def whole(path: Path, largest: int = _DOCUMENT) -> bytes:
    """A document, without its byte order mark. Raises UsageError, for one that is too large to be held too."""
    pieces: list[bytes] = []
    size = 0
    for piece in bytes_of(path):
        size += len(piece)
        if size > largest:
            raise UsageError(f"{str(path)!r} is a single JSON value of more than {largest >> 20:,} MiB", fix="split it")
        pieces.append(piece)
    return b"".join(pieces).removeprefix(MARK)


def array(chunks: Iterable[bytes]) -> Iterator[Piece]:
    """Each element of the array that the bytes begin with, one held at a time. Nothing when they begin with no array."""
    scanner = _Scanner(iter(chunks))
    scanner.more()
    scanner.data = scanner.data.removeprefix(MARK).lstrip()
    if not scanner.data.startswith(b"["):
        return
    scanner.at = 1
    yield from _elements(scanner)


def elements(data: bytes, begin: int = 0) -> Iterator[Piece]:
    """The same of an array that begins there in what is held."""
    if data[begin : begin + 1] == b"[":
        yield from _elements(_Scanner(iter(()), data, begin + 1))


def _elements(scanner: _Scanner) -> Iterator[Piece]:
    number = 0
    while (lead := scanner.next()) is not None:
        number += 1
        raw, problem = scanner.value()
        yield _piece(number, raw, problem, lead)


def _piece(number: int, raw: bytes, problem: str, lead: bytes) -> Piece:
    if problem:
        return Piece(number, raw, None, f"element {number} {problem}", lead)
    try:
        return Piece(number, raw, parsed(raw), "", lead)
    except ValueError as error:
        return Piece(number, raw, None, f"element {number} is no JSON: {error}", lead)


class _Scanner:
    """Finds where values end in bytes that come piece by piece."""

    def __init__(self, chunks: Iterator[bytes], data: bytes = b"", at: int = 0) -> None:
        self._chunks = chunks
        self.data = data
        self.at = at

    def more(self) -> bool:
        """Reads on, twice as much as is held, so that a long value is not looked through again and again."""
        pieces, size = [self.data[self.at :]], 0
        wanted = max(1, len(pieces[0]))
        while size < wanted and (chunk := next(self._chunks, None)) is not None:
            pieces.append(chunk)
            size += len(chunk)
        self.data, self.at = b"".join(pieces), 0
        return size > 0

    def next(self) -> bytes | None:
        """Goes to where the next element begins, and gives what stands before it; None at the array's end."""
        lead = b""
        while True:
            begin, self.at = self.at, past(self.data, self.at)
            lead += self.data[begin : self.at]
            if self.at < len(self.data):
                return lead if self.data[self.at : self.at + 1] != b"]" else None
            if not self.more():
                return None

    def value(self) -> tuple[bytes, str]:
        """The element that begins here, and what is wrong with it."""
        held: list[bytes] = []
        depth = size = 0
        inside = False  # a string that is longer than what is held
        too_large = False
        while True:
            end, depth, inside = self.ends(depth, inside)
            if depth == 0 and not inside:
                held.append(self.data[self.at : end])
                self.at = end
                return (b"", f"is larger than {LARGEST >> 20} MiB") if too_large else (b"".join(held), "")
            held.append(self.data[self.at : end])
            size += end - self.at
            self.at = end
            if size > LARGEST:
                too_large = True
                held.clear()
            if not self.more():
                held.append(self.data[self.at :])
                self.at = len(self.data)
                return (b"", "is cut off, and too large to be held") if too_large else (b"".join(held), "is cut off")

    def ends(self, depth: int, inside: bool) -> tuple[int, int, bool]:
        """Where the value ends in what is held, else how far it was looked through: (place, depth, in a string)."""
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
        return self._untorn(end), depth, False

    def _scalar(self, at: int) -> int:
        """The end of a number or a word, which may go on in what is not read yet."""
        while (scalar := _SCALAR.match(self.data, at)) is not None and scalar.end() == len(self.data):
            at -= self.at
            if not self.more():
                break
        return scalar.end() if scalar else at + 1

    def _untorn(self, end: int) -> int:
        """How far what is held was looked through: there is no whole string behind the last bracket that a cut could tear."""
        return len(self.data) if self.data.find(b'"', end) < 0 else end

    def _safe(self, at: int) -> int:
        """The end of what is held, or a little before, so that no escape is torn."""
        tail = len(self.data) - len(self.data.rstrip(b"\\"))
        return max(at, len(self.data) - tail)


def past(data: bytes, at: int) -> int:
    """Where what stands between values ends that begins there."""
    between = _BETWEEN.match(data, at)
    return between.end() if between else at


def member(data: bytes, name: str, begin: int = 0) -> Span | None:
    """The first member of that name in the object that begins there."""
    return next((span for span in members(data, begin) if span.name == name), None)


def members(data: bytes, begin: int = 0) -> Iterator[Span]:
    """The members of the object that begins there, as far as they can be read; none when there is no object."""
    return (span for _, span in along(data, ("*",), begin))


def along(data: bytes, names: tuple[str, ...], begin: int = 0) -> Iterator[tuple[tuple[str, ...], Span]]:
    """The members of an object that are reached by these names, `*` being any, each by its whole way; one behind what is in it.

    It is looked through once, however deep they lie.
    """
    return _along(data, names, begin, ())


def _along(data: bytes, names: tuple[str, ...], begin: int, above: tuple[str, ...]) -> Generator[tuple[tuple[str, ...], Span], None, int]:
    at = data.find(b"{", begin) + 1
    if at == 0 or data[begin : at - 1].strip():
        return begin
    while True:
        key = _KEY.match(data, at)
        if key is None:
            at = past(data, at)
            if at >= len(data) or data[at] in b"}":
                return min(at + 1, len(data))
            at = _end(data, at)  # something broken, behind which others may stand
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
        return str(parsed(key))
    return None


def _end(data: bytes, begin: int) -> int:
    """Where the value ends that begins there; the end of all when it does not."""
    end, depth, inside = _Scanner(iter(()), data, begin).ends(0, False)
    return len(data) if depth or inside else end


@lru_cache(maxsize=4)
def beginning(head: bytes) -> Json:
    """What a JSON document says that is perhaps cut off, as far as it goes; None when it is no JSON."""
    text = head.removeprefix(MARK).strip()
    if text[:1] not in (b"[", b"{"):
        return None
    with suppress(ValueError):
        return parsed(text)
    for closed in _closed(text):
        with suppress(ValueError):
            return parsed(closed)
    return None


def _closed(text: bytes) -> Iterator[bytes]:
    """The text with its open string and brackets closed; and cut before the last member that is not whole."""
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
