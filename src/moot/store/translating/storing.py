"""The transaction that makes the new translation of a whole run visible."""

from __future__ import annotations

from typing import Any

from moot.store.overlays import written
from moot.store.transaction import Transaction
from moot.store.translating.working import Due, Work
from moot.types.canonical import dumps

__all__ = ["put"]

_STRETCH = 256
"""Events per row."""


def put(what: Due, work: Work, transaction: Transaction) -> bool:
    """Store a translation; return False, without changes, if another process has stored it already."""
    if any(_is_there(transaction, id, converter) for id, converter in work.converters.items()):
        return False
    for id, converter in work.converters.items():
        _put_exchange(transaction, what, work, id, converter)
    if work.message is not None:
        _put_message(transaction, what.message, *work.message)
    return True


def _is_there(transaction: Transaction, exchange: str, converter: str) -> bool:
    return transaction.row("SELECT 1 FROM translation WHERE exchange = ? AND converter = ? LIMIT 1", (exchange, converter)) is not None


def _put_exchange(transaction: Transaction, what: Due, work: Work, exchange: str, converter: str) -> None:
    """Store rows that cover the exchange from its first to its last event without gaps, even if nothing changed."""
    first, last = work.ranges[exchange]
    changed = work.changed.get(exchange, [])
    stretches = [changed[begin : begin + _STRETCH] for begin in range(0, len(changed), _STRETCH)] or [[]]
    for number, stretch in enumerate(stretches, 1):
        is_last = number == len(stretches)
        through = last if is_last else stretch[-1][0]
        ending = dumps(work.endings[exchange]) if is_last and exchange in work.endings else None
        transaction.execute(
            "INSERT INTO translation (conversation, converter, first_seq, last_seq, chunks, exchange, ending, made_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (what.no, converter, first, through, written(stretch), exchange, ending, transaction.now_ms),
        )
        first = through + 1


def _put_message(transaction: Transaction, id: str, parts: bytes, metadata: bytes) -> None:
    """Update the message, and have it indexed again."""
    row: Any = transaction.row("SELECT parts, metadata FROM message WHERE id = ?", (id,))
    if row is None or (row[0], row[1]) == (parts, metadata):
        return
    transaction.execute("UPDATE message SET parts = ?, metadata = ? WHERE id = ?", (parts, metadata, id))
    transaction.execute("UPDATE message SET is_indexed = 0 WHERE id = ? AND is_indexed = 1", (id,))
