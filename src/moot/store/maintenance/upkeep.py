"""Sealing old events, returning free pages and measuring sizes, done in small steps by one process at a time.

Rows of ended runs become a segment. Rows are read in a snapshot, packed outside transactions, and replaced in a short one. A single
transaction inserts the segment and deletes its rows, or does neither if any of these rows has changed. A crash or redaction at any time
therefore leaves either the rows or the complete segment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import anyio
from anyio import to_thread

from moot.errors import StoreCorrupt
from moot.store import lookup
from moot.store.database.connection import Queries, checkpoints_path
from moot.store.database.locks import FileLock
from moot.store.database.reader import Reader
from moot.store.database.transaction import SEQ_BITS, Transaction
from moot.store.database.writer import Writer
from moot.store.log import segments
from moot.store.log.rows import Row
from moot.store.log.segments import Packed, content_size
from moot.store.lookup import CONVERSATION_OWNED
from moot.store.maintenance.vacuum import empty_log, rewrite_database
from moot.store.rows import EVENT
from moot.types.canonical import dumps
from moot.types.crash import point
from moot.types.ids import Clock
from moot.types.maintenance import ConversationSize, Extent, ReportProgress, Sealed, Sizes

_EVENTS = 1024
_BYTES = 2 << 20  # maximum size of a segment before compression: as much as a transaction of about 10 ms can replace
_SMALL = _EVENTS // 2
_SMALL_DATA = 64 << 10  # the last segment is repacked together with later rows if it has fewer events and bytes than this
_CONVERSATIONS = 500

# the last seq that may be sealed, and the time of the conversation's last event
_DUE = """
    SELECT * FROM (
        SELECT h.conversation, h.sealed_through,
            min(h.next_seq - 1, coalesce((
                SELECT min(r.first_seq) - 1 FROM run AS r
                WHERE r.conversation = h.conversation AND r.status IN ('queued', 'running', 'waiting', 'interrupted')
            ), h.next_seq - 1)) AS through,
            (SELECT e.at FROM event AS e WHERE e.id = (h.conversation << 32) + h.next_seq - 1) AS at
        FROM log_head AS h WHERE h.next_seq - 1 > h.sealed_through AND h.conversation > ? AND h.conversation = coalesce(?, h.conversation)
    ) WHERE through > sealed_through AND at <= ? ORDER BY conversation LIMIT ?
"""


class SealCandidate(NamedTuple):
    """A conversation with something to seal."""

    conversation: int
    sealed_through: int
    through: int
    """The last event that may be sealed; all events of unfinished runs come after it."""

    @property
    def events(self) -> int:
        return self.through - self.sealed_through


class SegmentPlan(NamedTuple):
    """The contents of a new segment: rows of small segments that it replaces, then rows of the log."""

    conversation: int
    sealed_through: int
    merged: tuple[tuple[int, bytes], ...]
    """First seq and frame index of each replaced segment."""
    merged_size: int
    """Total size of those segments in bytes."""
    rows: list[Row]

    @property
    def first(self) -> int:
        return self.rows[0].seq

    @property
    def last(self) -> int:
        return self.rows[-1].seq


def conversations_to_seal(queries: Queries, before: int, *, after: int = 0, only: int | None = None) -> list[SealCandidate]:
    """Return the next conversations after number `after` that have events to seal and whose last event is no later than `before` (µs)."""
    found: Any = queries.execute(_DUE, (after, only, before, _CONVERSATIONS))
    return [SealCandidate(*row[:3]) for row in found.fetchall()]


def plan_segment(queries: Queries, what: SealCandidate) -> SegmentPlan | None:
    """Plan the next segment of a conversation; None if nothing more can be sealed."""
    head: Any = queries.execute("SELECT sealed_through FROM log_head WHERE conversation = ?", (what.conversation,)).fetchone()
    if head is None or head[0] >= what.through:
        return None
    merged, merged_size, rows = _small(queries, what.conversation, head[0])
    base, size = what.conversation << SEQ_BITS, sum(map(content_size, rows))
    found: Any = queries.execute(f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base + head[0], base + what.through))
    before = len(rows)
    for values in found:
        row = Row(*values)
        size += content_size(row)
        if len(rows) == _EVENTS or (len(rows) > before and size > _BYTES):
            break
        rows.append(row)
    dense = len(rows) > before and rows[before].seq == head[0] + 1 and rows[-1].seq - rows[0].seq + 1 == len(rows)
    return SegmentPlan(what.conversation, head[0], merged, merged_size, rows) if dense else None


def _small(queries: Queries, conversation: int, through: int) -> tuple[tuple[tuple[int, bytes], ...], int, list[Row]]:
    last: Any = queries.execute(
        "SELECT first_seq, frames, length(data) FROM segment WHERE conversation = ? AND last_seq = ?", (conversation, through)
    ).fetchone()
    if last is None or through - last[0] + 1 >= _SMALL or last[2] >= _SMALL_DATA:
        return (), 0, []
    rows = [segments.with_check(row) for row in segments.rows(queries, conversation, last[0] - 1, through)]
    if not all(row.check for row in rows):
        return (), 0, []
    return ((last[0], last[1]),), last[2] + len(last[1]), rows


def replace_rows(made: SegmentPlan, packed: Packed, transaction: Transaction) -> bool:
    """Replace rows with their segment. Return False, without changes, if the stored rows differ from those in the plan."""
    conversation, base = made.conversation, made.conversation << SEQ_BITS
    if transaction.row("SELECT sealed_through FROM log_head WHERE conversation = ?", (conversation,)) != (made.sealed_through,):
        return False
    bounds = (base + made.sealed_through, base + made.last)
    there = transaction.execute(
        "SELECT first_seq, frames FROM segment WHERE conversation = ? AND first_seq >= ?", (conversation, made.first)
    )
    if tuple(there.fetchall()) != made.merged:
        return False
    known = [(row.id, row.at, row.check) for row in made.rows if row.seq > made.sealed_through]
    if transaction.execute('SELECT id, at, "check" FROM event WHERE id > ? AND id <= ? ORDER BY id', bounds).fetchall() != known:
        return False
    segments.insert(transaction, conversation, made.first, made.last, packed)
    point("seal.inserted")
    transaction.execute("DELETE FROM event WHERE id > ? AND id <= ?", bounds)
    transaction.execute("UPDATE log_head SET sealed_through = ? WHERE conversation = ?", (made.last, conversation))
    point("seal.replaced")
    return True


_ROW = 45  # approximate size of a log row in bytes without its content: id, time, run, exchange, kind and check
_ROWS = """
    SELECT id >> 32, count(*), sum(length(chunks) + coalesce(length(raw), 0) + coalesce(length(body), 0)), coalesce(sum(length(raw)), 0)
    FROM event GROUP BY id >> 32
"""
_SEGMENTS = """
    SELECT s.conversation, count(DISTINCT s.first_seq), count(*), sum(json_extract(f.value, '$[1]') - json_extract(f.value, '$[0]') + 1),
        sum(json_extract(f.value, '$[5]')), (SELECT sum(length(data) + length(frames)) FROM segment WHERE conversation = s.conversation)
    FROM segment AS s JOIN json_each(CAST(s.frames AS TEXT)) AS f GROUP BY s.conversation
"""


async def measure(reader: Reader, path: Path, largest: int, owner: str | None) -> Sizes:
    """Measure the whole store. Each table is read in its own snapshot, so that other reads can run in between."""
    rows: list[Any] = await reader.read(lambda connection: connection.execute(_ROWS).fetchall())
    sealed: list[Any] = await reader.read(lambda connection: connection.execute(_SEGMENTS).fetchall())
    open_by = {no: Extent(count, size, size + _ROW * count) for no, count, size, _ in rows}
    sealed_by = {no: Extent(count, size, stored) for no, _, _, count, size, stored in sealed}
    database, free, mode = await _file(reader)
    heaviest = sorted({*open_by, *sealed_by}, key=lambda no: -_stored(open_by, no) - _stored(sealed_by, no))
    names = await reader.rows(
        "SELECT c.no, c.id, c.title FROM json_each(?) AS n JOIN conversation AS c ON c.no = n.value"
        f" WHERE true{CONVERSATION_OWNED} ORDER BY n.key LIMIT ?",
        (dumps(heaviest).decode(), owner, largest),
        tuple[int, str, str],
    )
    return Sizes(
        database,
        free,
        bool(mode),
        _sum(open_by),
        _sum(sealed_by),
        sum(row[1] for row in sealed),
        sum(row[2] for row in sealed),
        sum(row[3] for row in rows),
        await _one(reader, "SELECT sum(length(parts) + length(metadata)) FROM message"),
        sum([await _one(reader, sql) for sql in _INDEX]),
        await _one(reader, "SELECT sum(length(request)) FROM exchange"),
        await _one(reader, "SELECT sum(size) FROM blob"),
        await _one(reader, "SELECT sum(length(data)) FROM blob"),
        await to_thread.run_sync(_size, checkpoints_path(path)),
        tuple(ConversationSize(id, title, open_by.get(no, Extent()), sealed_by.get(no, Extent())) for no, id, title in names),
    )


def _stored(by: dict[int, Extent], no: int) -> int:
    return by[no].stored if no in by else 0


def _sum(by: dict[int, Extent]) -> Extent:
    return Extent(*(sum(getattr(one, name) for one in by.values()) for name in ("events", "bytes", "stored")))


async def _file(reader: Reader) -> tuple[int, int, int]:
    """Return the sizes of the database and its free pages in bytes, and the auto-vacuum mode. Mode 0 never returns free pages."""
    sql = (
        "SELECT page_count * page_size, freelist_count * page_size, auto_vacuum"
        " FROM pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum"
    )
    return await reader.row(sql, (), tuple[int, int, int]) or (0, 0, 0)


def _size(path: Path) -> int:
    """Return the size of a file, or 0 if it doesn't exist."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


async def _one(reader: Reader, sql: str) -> int:
    return await reader.row(sql, (), lambda row: int(row[0] or 0)) or 0


_INDEX: tuple[LiteralString, ...] = (
    "SELECT count(*) * 20 FROM search",
    "SELECT sum(length(block)) FROM search_words_data",
    "SELECT sum(length(sz)) FROM search_words_docsize",
    "SELECT sum(length(CAST(term AS BLOB))) FROM search_term",
    "SELECT sum(length(block)) FROM search_infix_data",
)
"""Queries for the size in bytes of each table of the search index, estimated for numeric tables. FTS5 stores its index in tables too."""

_PAGES = 256  # pages returned in one transaction: 1 MiB, which takes a few milliseconds
_REST = 0.2  # seconds to pause after a segment of many events when there is no hurry; reading and replacing them takes a twentieth of that
_MANY = 512
_PATIENCE = 20.0  # seconds to wait for readers of an old state

log = logging.getLogger("moot.store")


class StoreUpkeep:
    """The SQLite implementation of `Upkeep`."""

    def __init__(self, writer: Writer, reader: Reader, path: Path, lock: FileLock, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._path = path
        self._lock = lock
        self._clock = clock

    async def seal(
        self, *, quiet: float = 0.0, seconds: float | None = None, share: float = 1.0, conversation: str | None = None, dry: bool = False
    ) -> AsyncGenerator[Sealed, None]:
        only = None if conversation is None else await self._reader.read(partial(lookup.number, id=conversation))
        before, until = self._clock.now() - int(quiet * 1e6), None if seconds is None else time.monotonic() + seconds
        if not dry and not await self._reader.call(partial(self._lock.take, wait=False)):
            return
        try:
            done, last = Sealed(), 0
            while found := await self._reader.read(partial(conversations_to_seal, before=before, after=last, only=only)):
                for what in found:
                    last = what.conversation
                    done = Sealed(done.conversations + 1, done.events + (what.events if dry else 0), done.before, done.after)
                    while not dry and (step := await self._step(what, share)) is not None:
                        done = Sealed(done.conversations, done.events + step.events, done.before + step.before, done.after + step.after)
                        yield done
                        if until is not None and time.monotonic() > until:
                            return
                        await anyio.sleep(_REST * min(step.events / _MANY, 1.0) if share < 1 else 0)
            yield done
        finally:
            if not dry:
                self._lock.release()

    async def _step(self, what: SealCandidate, share: float) -> Sealed | None:
        made = await self._reader.read(partial(plan_segment, what=what))
        if made is None:
            return None
        try:
            # abandoned on cancel, because packing changes nothing: an exiting process doesn't wait for it
            packed = await to_thread.run_sync(segments.pack_segment, made.rows, share, abandon_on_cancel=True)
        except StoreCorrupt as error:
            log.error("events of conversation number %d were not sealed: %s", what.conversation, error)
            return None
        if not await self._writer.write(partial(replace_rows, made, packed)):
            return None  # another process was faster or redacted some rows: the next pass finds the rest
        before = sum(content_size(row) for row in made.rows if row.seq > made.sealed_through)
        return Sealed(0, made.last - made.sealed_through, before, len(packed.data) + len(packed.frames) - made.merged_size)

    async def give_back(self, *, keep: int = 0, share: float = 1.0) -> AsyncGenerator[int, None]:
        left = await self._free()
        while left > keep:
            started = time.monotonic()
            await self._writer.write(lambda transaction: transaction.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall())
            before, left = left, await self._free()
            if left >= before:
                return
            yield max(left - keep, 0)
            await anyio.sleep((time.monotonic() - started) * (1 / share - 1))

    async def _free(self) -> int:
        _, free, mode = await _file(self._reader)
        return free if mode else 0

    async def rewrite(self, tell: ReportProgress) -> None:
        await rewrite_database(self._writer, self._reader, self._path, tell)
        if not await empty_log(self._writer, self._path, tell, _PATIENCE):
            log.warning("the write-ahead log will be emptied once no reader needs an old state")

    async def sizes(self, *, largest: int = 10, owner: str | None = None) -> Sizes:
        return await measure(self._reader, self._path, largest, owner)
