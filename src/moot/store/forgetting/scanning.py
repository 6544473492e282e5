"""Which events of a conversation hold what is looked for, also where it is split over them. Pure, but for the rows it is fed.

A string may lie in one event, or be spread over many: one token an event, in chunks as in the vendor's own frames, or over two reads
of a socket. So three things are read as if they were one text each: the deltas of a part; the raw of an exchange; and each field of the
JSON frames of an exchange, by its place in the frame. Every event that gives a letter to what is found there is one that holds it.
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
"""Chunks that go on with a text: what says of which, and the field with the text."""
_APART = ("index", "output_index", "content_index", "item_id", "itemId", "toolCallId")
"""Fields that tell the things of a frame apart which come side by side."""


@dataclass(slots=True)
class _Stream:
    """One text, with the events and chunks that it came in."""

    pieces: list[str] = field(default_factory=list[str])
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Seq and index of the chunk; -1 = it is raw."""


class Scan:
    """Takes the rows of a conversation in their order; then says of each what becomes of it."""

    def __init__(self, needles: Needles) -> None:
        self.hits: set[int] = set()
        """Seqs of events that hold something."""
        self._needles = needles
        self._deltas: dict[tuple[int, int], str] = {}
        """What is left of deltas that hold some of it."""
        self._streams: dict[Hashable, dict[Hashable, _Stream]] = {}
        """By exchange (or run), then by text."""
        self._raws: dict[Hashable, list[tuple[int, bytes]]] = {}

    def row(self, row: Row) -> None:
        """Looks at the next event."""
        needles, was = self._needles, former(row)
        said = [data for data in (row.raw, was.chunks, was.body) if data]
        if needles.within(b"\0".join(said)) and any(needles.within(data) for data in said):  # nearly always one look is enough
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
        """Behind the last event."""
        for of in {*self._streams, *self._raws}:
            self._close(of)

    def changed(self, row: Row, at: int) -> Row:
        """The tombstone in the place of an event that holds something."""
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
        """Where something lies across the border of two reads."""
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
        said = self._needles.piece(value)
        parts = value.get("parts")
        if isinstance(parts, list):
            said["parts"] = [self._needles.piece(part) if isinstance(part, dict) else self._needles.value(part) for part in parts]
        return dumps(said)


def _without(text: str, start: int, spans: list[tuple[int, int]]) -> str:
    """What is left of a piece that stands there in the whole; the mark is where a span begins."""
    pieces: list[str] = []
    at, end = start, start + len(text)
    for first, behind in spans:
        if behind <= start or first >= end:
            continue
        pieces.append(text[at - start : max(first, start) - start])
        if first >= start:
            pieces.append(MARK)
        at = min(behind, end)
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
    """Texts of the JSON of a frame, each with its place."""
    for line in raw.splitlines():
        said = line[5:].strip() if line.startswith(b"data:") else line.strip()
        if said[:1] in (b"{", b"["):
            try:
                value = loads(said)
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
