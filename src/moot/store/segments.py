"""Sealed stretches of the log: a segment is a row of compressed frames, a frame the packed rows of at most 512 events.

A packed row is a header of fixed size (seq, at, run number or -1, the lengths of seven fields or -1 for null, the check) and the
fields' bytes: exchange, kind, chunks, raw, phase, key, body, each as the `event` table has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString, Protocol

from moot.errors import StoreCorrupt
from moot.plugins.registry import Registry
from moot.store.connect import Queries
from moot.store.rows import kept
from moot.store.stored import LAST_SEQ, Row, checked
from moot.store.transaction import SEQ_BITS, Transaction
from moot.types.canonical import Json, dumps

__all__ = ["CODECS", "HEADER", "rewrite", "rows"]

CODECS = Registry("moot.store.codecs", {"zstd": "moot.store.zstd:unpack"})
"""How frames are compressed, by the segment's `codec`; most stores have no segment, so nothing of it is imported before it is needed."""

CODEC = "zstd"
"""What new segments are written with."""
HEADER = struct.Struct(">Iqqiiiiiii8s")
_EVENTS = 512
_BYTES = 1 << 20
"""Of one frame, before it is compressed."""
_REPLACE: LiteralString = (
    'UPDATE event SET at = ?, run = ?, exchange = ?, kind = ?, chunks = ?, raw = ?, phase = ?, key = ?, body = ?, "check" = ? WHERE id = ?'
)


PACKERS = Registry("moot.store.packers", {"zstd": "moot.store.zstd:pack"})
"""How frames are written."""


class Pack(Protocol):
    def __call__(self, frame: bytes, /) -> bytes: ...


class Unpack(Protocol):
    def __call__(self, data: bytes, dictionary: str | None, /) -> bytes: ...


def rows(queries: Queries, conversation: int, after: int, through: int) -> Iterator[tuple[Any, ...]]:
    """The sealed rows of a conversation behind `after`, in order, as the `event` table would have them."""
    found = queries.execute(
        "SELECT codec, dictionary, frames, data FROM segment WHERE conversation = ? AND last_seq > ? AND first_seq <= ? ORDER BY first_seq",
        (conversation, after, through),
    )
    for codec, dictionary, frames, data in found.fetchall():
        unpack: Unpack = CODECS.load(codec)
        for first, last, offset, length in _index(frames):
            if last <= after or first > through:
                continue
            for row in _packed(unpack(data[offset : offset + length], dictionary), conversation << SEQ_BITS):
                if after < row[0] & 0xFFFFFFFF <= through:
                    yield row


def _index(frames: bytes) -> list[tuple[int, int, int, int]]:
    index = kept(frames)
    if not isinstance(index, list):
        raise StoreCorrupt("a segment's frame index is no list", fix="run `moot doctor`")
    return [(entry[0], entry[1], entry[2], entry[3]) for entry in index if isinstance(entry, list)]  # type: ignore[misc]


def _packed(frame: bytes, base: int) -> Iterator[tuple[Any, ...]]:
    position = 0
    while position < len(frame):
        seq, at, run, *lengths, check = HEADER.unpack_from(frame, position)
        position += HEADER.size
        fields: list[bytes | None] = []
        for length in lengths:
            fields.append(None if length < 0 else frame[position : position + length])
            position += max(length, 0)
        exchange, kind, chunks, raw, phase, key, body = fields
        yield (base | seq, at, None if run < 0 else run, _text(exchange), _text(kind), chunks, raw, _text(phase), _text(key), body, check)


def packed(events: Sequence[Row]) -> tuple[bytes, bytes]:
    """The frame index and the data of a segment of these rows, which lie one behind the other."""
    pack: Pack = PACKERS.load(CODEC)
    index: list[Json] = []
    data = bytearray()
    for group in _grouped(events):
        frame = pack(b"".join(map(_bytes, group)))
        index.append([group[0].seq, group[-1].seq, len(data), len(frame)])
        data += frame
    return dumps(index), bytes(data)


def _grouped(events: Sequence[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in events:
        size += len(row.chunks) + len(row.raw or b"") + len(row.body or b"")
        if group and (len(group) == _EVENTS or size > _BYTES):
            yield group
            group, size = [], len(row.chunks) + len(row.raw or b"") + len(row.body or b"")
        group.append(row)
    if group:
        yield group


def _bytes(row: Row) -> bytes:
    _, at, run, exchange, kind, chunks, raw, phase, key, body, check = row
    fields = [field.encode() if isinstance(field, str) else field for field in (exchange, kind, chunks, raw, phase, key, body)]
    lengths = (-1 if field is None else len(field) for field in fields)
    return HEADER.pack(row.seq, at, -1 if run is None else run, *lengths, check) + b"".join(field or b"" for field in fields)


def _text(field: bytes | None) -> str | None:
    return None if field is None else field.decode()


def rewrite(transaction: Transaction, conversation: int, replaced: Mapping[int, Row]) -> None:
    """Puts these rows where those with their seqs are, sealed or not, each with the check that fits it; nothing else changes.

    What was there is gone from tables, but not from pages of the file that are free now: for that it takes a vacuum.
    """
    anew = {seq: checked(row._replace(id=conversation << SEQ_BITS | seq)) for seq, row in replaced.items()}
    if not anew:
        return
    found = transaction.execute(
        "SELECT first_seq, last_seq FROM segment WHERE conversation = ? AND last_seq >= ? AND first_seq <= ?",
        (conversation, min(anew), max(anew)),
    ).fetchall()
    for first, last in found:
        if any(first <= seq <= last for seq in anew):
            kept_rows = [anew.pop(row[0] & LAST_SEQ, Row(*row)) for row in rows(transaction, conversation, first - 1, last)]
            frames, data = packed(kept_rows)
            transaction.execute(
                "UPDATE segment SET codec = ?, dictionary = ?, frames = ?, data = ? WHERE conversation = ? AND first_seq = ?",
                (CODEC, None, frames, data, conversation, first),
            )
    for row in anew.values():
        transaction.execute(_REPLACE, (*row[1:], row.id))
