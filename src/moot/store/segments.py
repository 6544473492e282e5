"""Reads sealed stretches of the log: a segment is a row of compressed frames, a frame the packed rows of at most 512 events.

A packed row is a header of fixed size (seq, at, run number or -1, the lengths of seven fields or -1 for null, the check) and the
fields' bytes: exchange, kind, chunks, raw, phase, key, body, each as the `event` table has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Protocol

from moot.errors import StoreCorrupt
from moot.plugins.registry import Registry
from moot.store.connect import Queries
from moot.store.rows import kept
from moot.store.transaction import SEQ_BITS

__all__ = ["CODECS", "HEADER", "rows"]

CODECS = Registry("moot.store.codecs", {"zstd": "moot.store.zstd:unpack"})
"""How frames are compressed, by the segment's `codec`; most stores have no segment, so nothing of it is imported before it is needed."""

HEADER = struct.Struct(">Iqqiiiiiii8s")


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


def _text(field: bytes | None) -> str | None:
    return None if field is None else field.decode()
