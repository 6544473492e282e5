"""Takes messages out of the search index, inside the transaction that changes them."""

from __future__ import annotations

from collections.abc import Iterable

from moot.store import words
from moot.store.transaction import Transaction

__all__ = ["unindex"]


def unindex(transaction: Transaction, messages: Iterable[str]) -> None:
    """Afterwards none of them can be found, and the indexer looks at those that are still there anew."""
    for id in messages:
        row = transaction.row("SELECT no, text FROM search WHERE message = ?", (id,))
        if row is not None:
            place, text = row
            # an index without content of its own has to be told what it is to forget
            for table, indexed in (("search_words", words.spaced(text)), ("search_substrings", text)):
                transaction.execute(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (place, indexed))
            transaction.execute("DELETE FROM search WHERE no = ?", (place,))
        transaction.execute("UPDATE message SET is_indexed = 0 WHERE id = ? AND is_indexed = 1", (id,))
