"""Sealed stretches of the log: a segment is a row of compressed frames, a frame up to 512 events.

A conversation's segments lie one behind the other from its first event to `log_head.sealed_through`; what comes behind is rows of `event`.
The index of a segment says where each frame is and what its bytes hash to, so one event is read by unpacking one frame, and a frame that is
not what was written is seen before anything is made of it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, LiteralString, NamedTuple, Protocol

from moot.errors import StoreCorrupt
from moot.plugins.registry import Registry
from moot.store.connect import Queries
from moot.store.rows import kept
from moot.store.stored import LAST_SEQ, Row, checked
from moot.store.transaction import SEQ_BITS, Transaction, checksum
from moot.types.canonical import Json, dumps

__all__ = ["CODECS", "FrameCache", "Packed", "insert", "packed", "rewrite", "rows", "said", "whole"]

CODEC = "columns"
"""What new segments are written with."""
CODECS = Registry("moot.store.codecs", {CODEC: "moot.store.zstd:COLUMNS"})
"""How frames are written and read, by the segment's `codec`; where there is no segment, nothing of it is imported."""

_EVENTS = 512
_BYTES = 1 << 20
"""Of one frame, before it is compressed."""
_CACHED = 16 << 20
_GAP = 0.00005
"""Seconds between a few events that are packed in the background: a thread that has the interpreter lets go of it after 5 ms, unless it
sleeps, and then an append would wait so long for each of the threads that it goes through."""
_AT_ONCE = 32
"""Events."""
_REPLACE: LiteralString = (
    'UPDATE event SET at = ?, run = ?, exchange = ?, kind = ?, chunks = ?, raw = ?, phase = ?, key = ?, body = ?, "check" = ? WHERE id = ?'
)
_SEGMENTS = (
    "SELECT first_seq, last_seq, codec, dictionary, frames FROM segment WHERE conversation = ? AND last_seq > ? AND first_seq <= ?"
    " ORDER BY first_seq"
)
_FRAME = "SELECT substr(data, ?, ?) FROM segment WHERE conversation = ? AND first_seq = ?"


class Codec(Protocol):
    """Writes and reads frames."""

    @property
    def dictionary(self) -> str | None: ...
    def pack(self, rows: Sequence[Row], /) -> bytes: ...
    def unpack(self, data: bytes, dictionary: str | None, base: int, first: int, /) -> list[tuple[Any, ...]]: ...


class Packed(NamedTuple):
    """Columns of a row of `segment`."""

    codec: str
    dictionary: str | None
    frames: bytes
    data: bytes


class _Place(NamedTuple):
    """An entry of a frame index."""

    first: int
    last: int
    offset: int
    length: int
    digest: str
    bytes: int
    """What its events say."""


class _Gently(list[Row]):
    """Rows that are gone through with gaps."""

    def __iter__(self) -> Iterator[Row]:
        for place, row in enumerate(super().__iter__()):
            if not place % _AT_ONCE:
                time.sleep(_GAP)
            yield row


class FrameCache:
    """The frames that were unpacked last, by their bytes, so that what was rewritten is not found here."""

    def __init__(self, limit: int = _CACHED) -> None:
        self._limit = limit
        self._frames: OrderedDict[tuple[bytes, str | None, int], tuple[list[tuple[Any, ...]], int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: tuple[bytes, str | None, int]) -> list[tuple[Any, ...]] | None:
        with self._lock:
            found = self._frames.get(key)
            if found is None:
                return None
            self._frames.move_to_end(key)
            return found[0]

    def put(self, key: tuple[bytes, str | None, int], rows: list[tuple[Any, ...]]) -> None:
        """Without it when it is larger than all that may be kept."""
        size = sum([200 + len(row[5]) + len(row[6] or b"") + len(row[9] or b"") for row in rows])
        with self._lock:
            if size > self._limit or key in self._frames:
                return
            self._frames[key] = (rows, size)
            self._size += size
            while self._size > self._limit:
                self._size -= self._frames.popitem(last=False)[1][1]


def rows(queries: Queries, conversation: int, after: int, through: int, cache: FrameCache | None = None) -> Iterator[tuple[Any, ...]]:
    """The sealed rows of a conversation behind `after`, in order, as the `event` table would have them, but for the check: None says that
    it is the one which follows from the event, empty that the event is lost, for its frame is broken."""
    for first, last, codec, dictionary, index in queries.execute(_SEGMENTS, (conversation, after, through)).fetchall():
        for place in _index(index, first, last):
            if place.last <= after or place.first > through:
                continue
            found = _frame(queries, conversation, first, place, (codec, dictionary), cache)
            begin, end = max(after + 1 - place.first, 0), through + 1 - place.first
            yield from found if not begin and end >= len(found) else found[begin:end]


def whole(row: tuple[Any, ...]) -> Row:
    """A row that `rows` gave, with its check."""
    if row[10] is not None:
        return Row(*row)
    id, _, _, _, kind, chunks, raw, phase, key, body, _ = row
    return Row._make((*row[:10], checksum(id & LAST_SEQ, kind, chunks, raw, phase, key, body)))


def _frame(
    queries: Queries, conversation: int, segment: int, place: _Place, written: tuple[str, str | None], cache: FrameCache | None
) -> list[tuple[Any, ...]]:
    base = conversation << SEQ_BITS
    found: Any = queries.execute(_FRAME, (place.offset + 1, place.length, conversation, segment)).fetchone()
    data = bytes(found[0] or b"")
    codec, dictionary = written
    key = (data, dictionary, base | place.first)
    if cache is not None and (known := cache.get(key)) is not None:
        return known
    try:
        if _digest(data) != place.digest:
            raise StoreCorrupt("a frame of a segment is not what was written")
        unpacked = _codec(codec).unpack(data, dictionary, base, place.first)
    except StoreCorrupt:
        return _lost(base, place.first, place.last)
    if len(unpacked) != place.last - place.first + 1:
        return _lost(base, place.first, place.last)
    if cache is not None:
        cache.put(key, unpacked)
    return unpacked


def _lost(base: int, first: int, last: int) -> list[tuple[Any, ...]]:
    """What stands where events can't be read: seqs stay dense."""
    return [(base | seq, 0, None, None, "meta", b"[]", None, None, None, None, b"") for seq in range(first, last + 1)]


def _index(frames: bytes, first: int, last: int) -> list[_Place]:
    """The places of a segment's frames; one that no bytes fit where the index is broken."""
    try:
        index: Any = kept(frames)
        places = [_Place(*entry) for entry in index]
        borders = [first, *(place.last + 1 for place in places)]
        if [*(place.first for place in places), last + 1] == borders:
            return places
    except (ValueError, TypeError):
        pass  # judged below, like an index with a gap
    return [_Place(first, last, 0, 0, "", 0)]


def _codec(name: str) -> Codec:
    return CODECS.load(name)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def packed(events: Sequence[Row], share: float = 1.0) -> Packed:
    """A segment of these rows, which lie one behind the other. All of it is unpacked again and compared.

    Takes at most that share of the time: between frames it sleeps. Raises StoreCorrupt when it does not come back as it was.
    """
    codec = _codec(CODEC)
    index: list[Json] = []
    data = bytearray()
    for group in _grouped(events):
        began = time.monotonic()
        frame = codec.pack(_Gently(group) if share < 1 else group)
        back = codec.unpack(frame, codec.dictionary, group[0].id - group[0].seq, group[0].seq)
        if len(back) != len(group) or not all(
            one[:10] == row[:10] and one[10] in (None, row.check) for one, row in zip(back, group, strict=False)
        ):
            raise StoreCorrupt(
                f"events {group[0].seq} to {group[-1].seq} do not come back out of a segment", fix="report this; nothing was changed"
            )
        index.append([group[0].seq, group[-1].seq, len(data), len(frame), _digest(frame), sum(map(said, group))])
        data += frame
        time.sleep((time.monotonic() - began) * (1 / share - 1))
    return Packed(CODEC, codec.dictionary, dumps(index), bytes(data))


def _grouped(events: Sequence[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in events:
        length = said(row)
        if group and (len(group) == _EVENTS or size + length > _BYTES):
            yield group
            group, size = [], 0
        group.append(row)
        size += length
    if group:
        yield group


def said(row: Row) -> int:
    """Bytes of what an event says."""
    return len(row.chunks) + len(row.raw or b"") + len(row.body or b"")


def insert(transaction: Transaction, conversation: int, first: int, last: int, segment: Packed) -> None:
    """Puts it in the place of all segments from `first` to `last`."""
    transaction.execute("DELETE FROM segment WHERE conversation = ? AND first_seq >= ? AND last_seq <= ?", (conversation, first, last))
    transaction.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)", (conversation, first, last, *segment))


def rewrite(transaction: Transaction, conversation: int, replaced: Mapping[int, Row]) -> None:
    """Puts these rows where those with their seqs are, sealed or not, each with the check that fits it; nothing else changes.

    What was there is gone from tables, but not from pages of the file that are free now: for that it takes a vacuum.
    Raises StoreCorrupt when one lies in a frame that is broken, which could only be written anew with what is lost.
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
            before = [whole(row) for row in rows(transaction, conversation, first - 1, last)]
            if any(not row.check and row.seq not in anew for row in before):
                raise StoreCorrupt(f"a segment with the events {first} to {last} is broken", fix="see `moot verify`")
            insert(transaction, conversation, first, last, packed([anew.pop(row.seq, row) for row in before]))
    for row in anew.values():
        transaction.execute(_REPLACE, (*row[1:], row.id))
