"""Sealing: rows of ended runs become a segment. Read in one snapshot, packed outside of any transaction, put in their place in a short one.

The transaction that inserts the segment deletes its rows, and does neither when anything of them has changed meanwhile, so a crash or a
redaction at any instant leaves either the rows or the segment, whole.
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
"""Of one segment, before it is compressed: as much as a transaction of about a hundredth of a second replaces."""
_SMALL = _EVENTS // 2
_SMALL_DATA = 64 << 10
"""A last segment with fewer events and bytes is made anew together with what comes behind it."""
_CONVERSATIONS = 500

# the last seq that may be sealed, and when the conversation's last event was
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
    """The last event that may be: runs that have not ended come behind it."""

    @property
    def events(self) -> int:
        return self.through - self.sealed_through


class Stretch(NamedTuple):
    """What one segment is to hold: those of the segments that it takes the place of, then rows."""

    conversation: int
    sealed_through: int
    merged: tuple[tuple[int, bytes], ...]
    """First seq and frame index of each of those segments."""
    merged_size: int
    """Bytes of them."""
    rows: list[Row]

    @property
    def first(self) -> int:
        return self.rows[0].seq

    @property
    def last(self) -> int:
        return self.rows[-1].seq


def due(queries: Queries, before: int, *, after: int = 0, only: int | None = None) -> list[Due]:
    """The next conversations behind number `after` in which something can be sealed and whose last event was not after `before` (µs)."""
    found: Any = queries.execute(_DUE, (after, only, before, _CONVERSATIONS))
    return [Due(*row[:3]) for row in found.fetchall()]


def stretch(queries: Queries, what: Due) -> Stretch | None:
    """What its next segment is to hold; None when it is sealed as far as can be."""
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
    """The last segment when it is a small one that can be read."""
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
    """Puts the segment where its rows are; False, and nothing has happened, when they are not those that were read."""
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
