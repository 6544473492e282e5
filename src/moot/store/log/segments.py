"""Sealed segments of the log. A segment is a row of compressed frames; a frame holds up to 512 events.

A conversation's segments cover the log without gaps from its first event to `log_head.sealed_through`; later events are rows of `event`.
The index of a segment contains the position and hash of each frame. So only one frame is unpacked to read one event, and a damaged frame is
detected before it is used.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, LiteralString, NamedTuple, Protocol, cast

from moot.errors import StoreCorrupt
from moot.plugins.registry import Registry, attribute
from moot.store.database.connection import Queries
from moot.store.database.transaction import SEQ_BITS, Entry, Transaction, checksum
from moot.store.log.rows import LAST_SEQ, Row, checked
from moot.store.rows import EVENT, parse_stored
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk

CODEC = "columns"
"""The codec of new segments."""
CODECS = Registry("moot.store.codecs", {CODEC: "moot.store.log.frames:COLUMNS"})
"""Codecs by the name in the segment's `codec` column; imported only if there are segments."""
_FAST = "moot.store.log.frames:FAST"

_EVENTS = 512
_BYTES = 1 << 20  # maximum size of a frame before compression
_CACHED = 16 << 20
_PAUSE = 0.00005
"""Seconds of sleep between groups of events that are packed in the background. Without it, the packing thread would keep the interpreter
lock for 5 ms at a time, and an append would wait that long at each switch between threads."""
_AT_ONCE = 32  # events per group
_REPLACE: LiteralString = (
    'UPDATE event SET at = ?, run = ?, exchange = ?, kind = ?, chunks = ?, raw = ?, phase = ?, key = ?, body = ?, "check" = ? WHERE id = ?'
)
_SEGMENTS = (
    "SELECT first_seq, last_seq, codec, dictionary, frames FROM segment WHERE conversation = ? AND last_seq > ? AND first_seq <= ?"
    " ORDER BY first_seq"
)
_FRAME = "SELECT substr(data, ?, ?) FROM segment WHERE conversation = ? AND first_seq = ?"


class Codec(Protocol):
    """Encodes and decodes frames."""

    @property
    def dictionary(self) -> str | None: ...
    def pack(self, rows: Sequence[Row], /, *, is_new: bool = False) -> bytes: ...
    def unpack(self, data: bytes, dictionary: str | None, base: int, first: int, /) -> list[tuple[Any, ...]]: ...


class Packed(NamedTuple):
    """The data columns of a row of `segment`."""

    codec: str
    dictionary: str | None
    frames: bytes
    data: bytes


class _Place(NamedTuple):
    first: int
    last: int
    offset: int
    length: int
    digest: str
    bytes: int
    """Size of the events' content."""


class _PacedRows(list[Row]):
    def __iter__(self) -> Iterator[Row]:
        for place, row in enumerate(super().__iter__()):
            if not place % _AT_ONCE:
                time.sleep(_PAUSE)
            yield row


class FrameCache:
    """A cache of recently unpacked frames, keyed by their bytes, so that rewritten frames are never stale."""

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
        """Cache the rows, unless they alone exceed the size limit of the cache."""
        size = sum([200 + len(row[5]) + len(row[6] or b"") + len(row[9] or b"") for row in rows])
        with self._lock:
            if size > self._limit or key in self._frames:
                return
            self._frames[key] = (rows, size)
            self._size += size
            while self._size > self._limit:
                self._size -= self._frames.popitem(last=False)[1][1]


def rows(queries: Queries, conversation: int, after: int, through: int, cache: FrameCache | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield a conversation's sealed rows after `after`, in order, like rows of `event` except for the check: None if it matches the event,
    empty if the event is lost because its frame is damaged."""
    for first, last, codec, dictionary, index in queries.execute(_SEGMENTS, (conversation, after, through)).fetchall():
        for place in _index(index, first, last):
            if place.last <= after or place.first > through:
                continue
            found = _frame(queries, conversation, first, place, (codec, dictionary), cache)
            begin, end = max(after + 1 - place.first, 0), through + 1 - place.first
            yield from found if not begin and end >= len(found) else found[begin:end]


def with_check(row: tuple[Any, ...]) -> Row:
    """Convert a row yielded by `rows` to a `Row`. If its check is None, compute it."""
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
            raise StoreCorrupt("a frame of a segment does not match its checksum")
        unpacked = _codec(codec).unpack(data, dictionary, base, place.first)
    except StoreCorrupt:
        return _lost(base, place.first, place.last)
    if len(unpacked) != place.last - place.first + 1:
        return _lost(base, place.first, place.last)
    if cache is not None:
        cache.put(key, unpacked)
    return unpacked


def _lost(base: int, first: int, last: int) -> list[tuple[Any, ...]]:
    """Return placeholders for unreadable events, so that seqs have no gaps."""
    return [(base | seq, 0, None, None, "meta", b"[]", None, None, None, None, b"") for seq in range(first, last + 1)]


def _index(frames: bytes, first: int, last: int) -> list[_Place]:
    """Return the frames of a segment; if its index is damaged, return a single unreadable frame."""
    try:
        index: Any = parse_stored(frames)
        places = [_Place(*entry) for entry in index]
        borders = [first, *(place.last + 1 for place in places)]
        if [*(place.first for place in places), last + 1] == borders:
            return places
    except (ValueError, TypeError):
        pass  # handled below, like an index with a gap
    return [_Place(first, last, 0, 0, "", 0)]


def _codec(name: str) -> Codec:
    return CODECS.load(name)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def pack_segment(events: Sequence[Row], share: float = 1.0, *, fast: bool = False, is_new: bool = False) -> Packed:
    """Pack consecutive rows into a segment, then unpack it and compare.

    Work for at most the fraction `share` of the time, sleeping between frames. With `fast`, pack faster but use a little more space.
    `is_new` means that the events are not stored yet and have no checks. Raise StoreCorrupt if the unpacked rows differ.
    """
    codec: Codec = attribute(_FAST) if fast else _codec(CODEC)
    index: list[Json] = []
    data = bytearray()
    for group in _grouped(events):
        started = time.monotonic()
        frame = codec.pack(_PacedRows(group) if share < 1 else group, is_new=is_new)
        back = codec.unpack(frame, codec.dictionary, group[0].id - group[0].seq, group[0].seq)
        if len(back) != len(group) or not all(
            one[:10] == row[:10] and one[10] in (None, row.check) for one, row in zip(back, group, strict=False)
        ):
            raise StoreCorrupt(
                f"Events {group[0].seq} to {group[-1].seq} changed when they were packed into a segment.",
                fix="Please report this. The stored events are unchanged.",
            )
        index.append([group[0].seq, group[-1].seq, len(data), len(frame), _digest(frame), sum(map(content_size, group))])
        data += frame
        time.sleep((time.monotonic() - started) * (1 / share - 1))
    return Packed(CODEC, codec.dictionary, dumps(index), bytes(data))


def _grouped(events: Sequence[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in events:
        length = content_size(row)
        if group and (len(group) == _EVENTS or size + length > _BYTES):
            yield group
            group, size = [], 0
        group.append(row)
        size += length
    if group:
        yield group


def content_size(row: Row) -> int:
    """Return the size of an event's content in bytes."""
    return len(row.chunks) + len(row.raw or b"") + len(row.body or b"")


def insert(transaction: Transaction, conversation: int, first: int, last: int, segment: Packed) -> None:
    """Insert a segment and delete the segments within its range."""
    transaction.execute("DELETE FROM segment WHERE conversation = ? AND first_seq >= ? AND last_seq <= ?", (conversation, first, last))
    transaction.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)", (conversation, first, last, *segment))


_WORTH = 64 << 10  # size in bytes from which entries become a segment of their own; many small segments are slow to read


def append(transaction: Transaction, conversation: int, entries: Sequence[Entry]) -> range:
    """Append entries like `Transaction.add_encoded`, but seal them at once if they are large and all earlier events are sealed.

    The first entries of a conversation are sealed in any case, because most conversations are stored at once and never continued.
    """
    size = sum([len(entry.raw or b"") + len(entry.body) for entry in entries])
    head = transaction.row("SELECT next_seq, sealed_through FROM log_head WHERE conversation = ?", (conversation,))
    if head is None or head[0] != head[1] + 1 or (head[0] > 1 and size < _WORTH):
        return transaction.add_encoded(conversation, entries)
    seqs, base, now = transaction.number(conversation, len(entries)), conversation << SEQ_BITS, transaction.now
    found = [
        Row(base | seq, at or now, None, None, kind, b"[]", raw, None, None, body, b"")
        for seq, (kind, raw, body, at) in zip(seqs, entries, strict=True)
    ]
    insert(transaction, conversation, seqs.start, seqs.stop - 1, pack_segment(found, fast=size >= _WORTH, is_new=True))
    transaction.execute("UPDATE log_head SET sealed_through = ? WHERE conversation = ?", (seqs.stop - 1, conversation))
    return seqs


def rewrite(transaction: Transaction, conversation: int, replaced: Mapping[int, Row]) -> None:
    """Replace the rows with these seqs, sealed or not, and update their checks; nothing else changes.

    The old content is gone from the tables, but stays in free pages of the file until a vacuum. Raise StoreCorrupt if
    other events of a segment are lost because of a damaged frame: rewriting the segment would store them as empty.
    """
    updated = {seq: checked(row._replace(id=conversation << SEQ_BITS | seq)) for seq, row in replaced.items()}
    if not updated:
        return
    found = transaction.execute(
        "SELECT first_seq, last_seq FROM segment WHERE conversation = ? AND last_seq >= ? AND first_seq <= ?",
        (conversation, min(updated), max(updated)),
    ).fetchall()
    for first, last in found:
        if any(first <= seq <= last for seq in updated):
            before = [with_check(row) for row in rows(transaction, conversation, first - 1, last)]
            if any(not row.check and row.seq not in updated for row in before):
                raise StoreCorrupt(f"The segment with events {first} to {last} is damaged.", fix="Run `moot verify`.")
            insert(transaction, conversation, first, last, pack_segment([updated.pop(row.seq, row) for row in before]))
    for row in updated.values():
        transaction.execute(_REPLACE, (*row[1:], row.id))


def log_rows(queries: Queries, conversation: int, after: int, through: int = LAST_SEQ) -> Iterator[Row]:
    """Yield the rows after `after`, in order: first from segments, then from the table. Consume it within one snapshot."""
    head: Any = queries.execute("SELECT sealed_through FROM log_head WHERE conversation = ?", (conversation,)).fetchone()
    sealed = head[0] if head is not None else 0
    if sealed > after:
        for row in rows(queries, conversation, after, min(through, sealed)):
            yield with_check(row)
    base = conversation << SEQ_BITS
    found: Iterator[Any] = queries.execute(
        f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base + max(after, sealed), base + through)
    )
    for row in found:
        yield Row(*row)


def read_chunks(data: bytes) -> tuple[Chunk, ...]:
    """Decode a stored list of chunks. Raise ValueError if the data is something else."""
    if data == b"[]":
        return ()
    value = parse_stored(data)
    if not isinstance(value, list) or not all(isinstance(chunk, dict) and isinstance(chunk.get("type"), str) for chunk in value):
        raise ValueError("expected a list of chunks")
    return tuple(cast("list[Chunk]", value))


def read_object(data: bytes | None) -> JsonObject:
    """Decode an event's body. Return an empty object if it is not a JSON object. Raise ValueError for invalid JSON."""
    value: Json = parse_stored(data) if data is not None else None
    return value if isinstance(value, dict) else {}
