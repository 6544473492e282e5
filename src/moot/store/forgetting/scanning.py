"""Finding the events of a conversation that contain a match, also where it is split over several events. Pure, except for its input.

A match may be in one event or spread over many: one token per event, both in chunks and in the vendor's frames, or over two reads of a
socket. So three things are searched as joined texts: the deltas of a part, the raw of an exchange, and each field of the JSON frames of an
exchange, by its path in the frame. Every event that contributes a letter to a match is a hit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from moot.store.forgetting.needles import Needles
from moot.store.rows import kept
from moot.store.stored import Row, former, tombstone
from moot.types.canonical import JsonObject, dumps, loads
from moot.types.chunk import Chunk
from moot.types.forgetting import MARK

__all__ = ["Scan"]

_DELTAS = {"text-delta": ("id", "delta"), "reasoning-delta": ("id", "delta"), "tool-input-delta": ("toolCallId", "inputTextDelta")}
"""Delta chunks, with the field that identifies the text and the field with the delta."""
_APART = ("index", "output_index", "content_index", "item_id", "itemId", "toolCallId")
"""Fields that distinguish concurrent items in the frames of a stream."""


@dataclass(slots=True)
class _Stream:
    """One joined text, with the events and chunks of its pieces."""

    pieces: list[str] = field(default_factory=list[str])
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Seq and index of the chunk; -1 = raw."""


class Scan:
    """A scan of a conversation: feed it all rows in order, then let it build the tombstones."""

    def __init__(self, needles: Needles) -> None:
        self.hits: set[int] = set()
        """Seqs of events with a match."""
        self._needles = needles
        self._deltas: dict[tuple[int, int], str] = {}
        """Redacted deltas."""
        self._streams: dict[Hashable, dict[Hashable, _Stream]] = {}
        """By exchange (or run), then by text."""
        self._raws: dict[Hashable, list[tuple[int, bytes]]] = {}

    def row(self, row: Row) -> None:
        """Search the next event."""
        needles, was = self._needles, former(row)
        fields = [data for data in (row.raw, was.chunks, was.body) if data]
        if needles.within(b"\0".join(fields)) and any(needles.within(data) for data in fields):  # usually one check is sufficient
            self.hits.add(row.seq)
        of = row.run, row.exchange
        if row.raw is not None:
            self._raws.setdefault(of, []).append((row.seq, row.raw))
            for name, text in _leaves(row.raw):
                self._add(of, name, text, row.seq, -1)
        if row.chunks != b"[]":
            for index, (kind, id, text) in _deltas(was.chunks):
                self._add(of, (kind, id), text, row.seq, index)
        if was.kind == "exchange" and was.phase == "end":
            self._close(of)

    def end(self) -> None:
        """Search what is still open after the last event."""
        for of in {*self._streams, *self._raws}:
            self._close(of)

    def changed(self, row: Row, at: int) -> Row:
        """Return the tombstone for an event with a match."""
        was = former(row)
        body = was.body
        if body is not None and self._needles.within(body):
            body = self._body(was.kind, body)
        return tombstone(row, self._chunks(was), body, at)

    def _add(self, of: Hashable, name: Hashable, text: str, seq: int, index: int) -> None:
        stream = self._streams.setdefault(of, {}).setdefault(name, _Stream())
        stream.pieces.append(text)
        stream.places.append((seq, index))

    def _close(self, of: Hashable) -> None:
        for stream in self._streams.pop(of, {}).values():
            self._look(stream)
        raws = self._raws.pop(of, [])
        if len(raws) > 1:
            self._look_at_raw(raws)

    def _look(self, stream: _Stream) -> None:
        spans = self._needles.spans("".join(stream.pieces)) if len(stream.pieces) > 1 else []
        if not spans:
            return
        start = 0
        for text, (seq, index) in zip(stream.pieces, stream.places, strict=True):
            left = _without(text, start, spans)
            if left != text:
                self.hits.add(seq)
                if index >= 0:
                    self._deltas[seq, index] = left
            start += len(text)

    def _look_at_raw(self, raws: list[tuple[int, bytes]]) -> None:
        """Find matches across the border of two reads."""
        text = b"".join(data for _, data in raws).decode("utf-8", "surrogateescape")
        spans = [
            (len(text[:start].encode("utf-8", "surrogateescape")), len(text[:end].encode("utf-8", "surrogateescape")))
            for start, end in self._needles.spans(text)
        ]
        position = 0
        for seq, data in raws if spans else ():
            if any(start < position + len(data) and end > position for start, end in spans):
                self.hits.add(seq)
            position += len(data)

    def _chunks(self, row: Row) -> bytes:
        value = _list(row.chunks)
        if value is None:
            return b"[]"
        left: list[JsonObject] = []
        for index, chunk in enumerate(value):
            text = self._deltas.get((row.seq, index))
            if text is not None:
                chunk = {**chunk, _DELTAS[str(chunk["type"])][1]: text}
            left.append(self._needles.piece(chunk))
        return dumps(left)

    def _body(self, kind: str, body: bytes) -> bytes:
        try:
            value = kept(body)
        except ValueError:
            return b"null"
        if kind != "message" or not isinstance(value, dict):
            return dumps(self._needles.value(value))
        redacted = self._needles.piece(value)
        parts = value.get("parts")
        if isinstance(parts, list):
            redacted["parts"] = [self._needles.piece(part) if isinstance(part, dict) else self._needles.value(part) for part in parts]
        return dumps(redacted)


def _without(text: str, start: int, spans: list[tuple[int, int]]) -> str:
    """Redact a piece that starts at `start` of the joined text; the mark is at the start of a span."""
    pieces: list[str] = []
    at, end = start, start + len(text)
    for first, stop in spans:
        if stop <= start or first >= end:
            continue
        pieces.append(text[at - start : max(first, start) - start])
        if first >= start:
            pieces.append(MARK)
        at = min(stop, end)
    return "".join([*pieces, text[at - start :]])


def _list(chunks: bytes) -> list[Chunk] | None:
    try:
        value = kept(chunks)
    except ValueError:
        return None
    return [chunk for chunk in value if isinstance(chunk, dict)] if isinstance(value, list) else None


def _deltas(chunks: bytes) -> Iterator[tuple[int, tuple[str, str, str]]]:
    for index, chunk in enumerate(_list(chunks) or ()):
        kind = str(chunk.get("type"))
        if kind in _DELTAS:
            id, text = _DELTAS[kind]
            yield index, (kind, str(chunk.get(id)), str(chunk.get(text, "")))


def _leaves(raw: bytes) -> Iterator[tuple[Hashable, str]]:
    """Yield the strings in the JSON of a frame, with their paths."""
    for line in raw.splitlines():
        data = line[5:].strip() if line.startswith(b"data:") else line.strip()
        if data[:1] in (b"{", b"["):
            try:
                value = loads(data)
            except ValueError:
                continue
            yield from _strings(value, ())


def _strings(value: Any, place: tuple[Hashable, ...]) -> Iterator[tuple[Hashable, str]]:
    if isinstance(value, str):
        if value:
            yield place, value
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        apart = tuple(str(fields[name]) for name in _APART if name in fields and not isinstance(fields[name], dict | list))
        for name, each in fields.items():
            if name not in _APART:
                yield from _strings(each, (*place, *apart, name))
    elif isinstance(value, list):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _strings(each, (*place, index))
