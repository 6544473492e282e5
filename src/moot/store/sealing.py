"""Sealing: rows of ended runs become a segment. Rows are read in a snapshot, packed outside transactions, and replaced in a short one.

A single transaction inserts the segment and deletes its rows, or does neither if any of the rows changed meanwhile. So a crash or a
redaction at any time leaves either the rows or the complete segment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moot.store import segments
from moot.store.connect import Queries
from moot.store.rows import EVENT
from moot.store.segments import Packed, said
from moot.store.stored import Row
from moot.store.transaction import SEQ_BITS, Transaction
from moot.types.crash import point

__all__ = ["Due", "Stretch", "due", "put", "stretch"]

_EVENTS = 1024
_BYTES = 2 << 20
"""Maximum size of a segment before compression: as much as a transaction of about 10 ms can replace."""
_SMALL = _EVENTS // 2
_SMALL_DATA = 64 << 10
"""The last segment is repacked together with later rows if it has fewer events and bytes than this."""
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


class Due(NamedTuple):
    """A conversation with something to seal."""

    conversation: int
    sealed_through: int
    through: int
    """The last event that may be sealed; runs that have not ended start after it."""

    @property
    def events(self) -> int:
        return self.through - self.sealed_through


class Stretch(NamedTuple):
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


def due(queries: Queries, before: int, *, after: int = 0, only: int | None = None) -> list[Due]:
    """Return the next conversations after number `after` that have events to seal, the last of them no later than `before` (µs)."""
    found: Any = queries.execute(_DUE, (after, only, before, _CONVERSATIONS))
    return [Due(*row[:3]) for row in found.fetchall()]


def stretch(queries: Queries, what: Due) -> Stretch | None:
    """Plan the next segment of a conversation; None if nothing more can be sealed."""
    head: Any = queries.execute("SELECT sealed_through FROM log_head WHERE conversation = ?", (what.conversation,)).fetchone()
    if head is None or head[0] >= what.through:
        return None
    merged, merged_size, rows = _small(queries, what.conversation, head[0])
    base, size = what.conversation << SEQ_BITS, sum(map(said, rows))
    found: Any = queries.execute(f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base + head[0], base + what.through))
    before = len(rows)
    for values in found:
        row = Row(*values)
        size += said(row)
        if len(rows) == _EVENTS or (len(rows) > before and size > _BYTES):
            break
        rows.append(row)
    dense = len(rows) > before and rows[before].seq == head[0] + 1 and rows[-1].seq - rows[0].seq + 1 == len(rows)
    return Stretch(what.conversation, head[0], merged, merged_size, rows) if dense else None


def _small(queries: Queries, conversation: int, through: int) -> tuple[tuple[tuple[int, bytes], ...], int, list[Row]]:
    """Return the last segment if it is small and readable."""
    last: Any = queries.execute(
        "SELECT first_seq, frames, length(data) FROM segment WHERE conversation = ? AND last_seq = ?", (conversation, through)
    ).fetchone()
    if last is None or through - last[0] + 1 >= _SMALL or last[2] >= _SMALL_DATA:
        return (), 0, []
    rows = [segments.whole(row) for row in segments.rows(queries, conversation, last[0] - 1, through)]
    if not all(row.check for row in rows):
        return (), 0, []
    return ((last[0], last[1]),), last[2] + len(last[1]), rows


def put(made: Stretch, packed: Packed, transaction: Transaction) -> bool:
    """Replace rows by their segment; return False, without changes, if the rows are not those that were read."""
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
