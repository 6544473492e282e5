"""Events survive a round trip through the columns of a frame."""

from __future__ import annotations

import json
import random
from typing import Any

import zstandard
from hypothesis import given
from hypothesis import strategies as some

from moot.store.database.transaction import SEQ_BITS
from moot.store.log import frames
from moot.store.log.frames import COLUMNS
from moot.store.log.rows import Row, checked
from moot.store.log.segments import pack_segment, with_check

BASE = 7 << SEQ_BITS


def dense(rows: list[Row], first: int = 1) -> list[Row]:
    return [
        checked(row._replace(id=BASE | first + place)) if not row.check else row._replace(id=BASE | first + place)
        for place, row in enumerate(rows)
    ]


def back(rows: list[Row]) -> list[Row]:
    return [with_check(row) for row in frames.unpack(frames.pack(rows), BASE, rows[0].seq)]


words = some.sampled_from([b"", b"the", b" end", b"%b", b"%%", b"\0", b"\n", b'"', b"\\", b'\\"', b"\xff", b"12", b"007", b"-1", b"9" * 30])
pieces = some.lists(words, max_size=4).map(b"".join)
shapes = some.sampled_from(
    [b'data: {"a":"X","b":1}\n\n', b'[{"type":"text-delta","id":"0","delta":"X"}]', b'{"n":X}', b"X", b'"X', b'X""X']
)
fields = some.one_of(some.binary(max_size=20), some.builds(lambda shape, piece: shape.replace(b"X", piece), shapes, pieces))
texts = some.one_of(some.none(), some.sampled_from([":1.0", "=", "end"]), some.text(max_size=5))
events = some.builds(
    Row,
    some.just(0),
    some.integers(0, 2**62),
    some.one_of(some.none(), some.sampled_from([1, 2]), some.integers(1, 2**60)),
    texts,
    some.sampled_from(["raw", "chunks", "meta"]),
    fields,
    some.one_of(some.none(), fields),
    texts,
    texts,
    some.one_of(some.none(), fields),
    some.one_of(some.just(b""), some.binary(min_size=8, max_size=8)),
)


@given(some.lists(events, min_size=1, max_size=12), some.integers(1, 2**31))
def test_packing_events_is_lossless(rows: list[Row], first: int) -> None:
    rows = dense(rows, first)
    assert back(rows) == rows


@given(some.lists(pieces, min_size=1, max_size=40), shapes, shapes, some.integers(0, 2**32))
def test_packing_streams_of_one_shape_is_lossless(said: list[bytes], shape: bytes, other: bytes, seed: int) -> None:
    chance, rows = random.Random(seed), []
    for number, piece in enumerate(said):
        raw = shape.replace(b"X", piece) + b'"uuid":"%d"' % chance.getrandbits(60)
        rows.append(Row(0, 1_000_000 + 25 * number, 1, ":1.0", "raw", other.replace(b"X", piece), raw, None, None, None, b""))
    assert back(dense(rows)) == dense(rows)


def stream(count: int, said: Any) -> list[Row]:
    rows: list[Row] = []
    for number in range(count):
        raw = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % said(
            number
        )
        rows.append(
            Row(
                0, 1_795_000_000_000_000 + number * 25_000, 4, ":1.0", "raw", b'[{"delta":"%b"}]' % said(number), raw, None, None, None, b""
            )
        )
    return dense(rows)


def test_text_in_raw_and_chunks_is_stored_once() -> None:
    chance = random.Random(1)
    said = [b" %x" % chance.getrandbits(64) for _ in range(512)]
    rows = stream(512, said.__getitem__)
    size = len(COLUMNS.pack(rows))
    alone = len(zstandard.ZstdCompressor(level=12).compress(b"\n".join(said)))
    assert size < alone + 500
    assert back(rows) == rows


def test_hostile_bytes_are_packed_fast() -> None:
    rows = dense([Row(0, 0, 1, None, "raw", b"[]", b'"' + b'\\"' * 8000, None, None, None, b"") for _ in range(64)])
    rows += dense([Row(0, 0, 1, None, "raw", b"[]", b"%d," % number * 3000, None, None, None, b"") for number in range(64)], 65)
    assert back(rows) == rows


def test_a_large_event_has_a_frame_of_its_own() -> None:
    rows = stream(3, lambda number: b"x" * (700_000 if number == 1 else 10))
    assert [entry[:2] for entry in json.loads(pack_segment(rows).frames)] == [[1, 1], [2, 2], [3, 3]]
