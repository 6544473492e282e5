"""Removing messages from the search index permanently, including words that no other message has."""

from __future__ import annotations

from typing import Any

from moot.store.connect import Connection
from moot.store.searching.filling import take_out
from moot.store.searching.vocabulary import unlearn
from moot.store.transaction import Transaction

__all__ = ["merge_some", "optimize", "unindex", "unindex_all"]

_PAGES = 200
"""Index pages merged at a time: a few milliseconds."""


def unindex(transaction: Transaction, message: str) -> bool:
    """Remove a message and return True if it was indexed; if it still exists, it is indexed again later."""
    row: Any = transaction.row("SELECT m.no, s.no FROM message AS m LEFT JOIN search AS s ON s.message = m.no WHERE m.id = ?", (message,))
    if row is None:
        return False
    take_out(transaction, row[0], purged=True)
    transaction.execute("UPDATE message SET is_indexed = 0 WHERE no = ? AND is_indexed = 1", (row[0],))
    return row[1] is not None


def unindex_all(transaction: Transaction, conversation: int) -> int:
    """Remove a conversation's messages and return how many were indexed."""
    rows = transaction.execute("SELECT message FROM search WHERE conversation = ?", (conversation,)).fetchall()
    for (message,) in rows:
        take_out(transaction, message, purged=True)
    return len(rows)


def merge_some(first: bool, transaction: Transaction) -> bool:
    """Merge the indexes by one step; removed words disappear when they are fully merged. Return False when done."""
    pages = -_PAGES if first else _PAGES  # a negative number first assigns all segments to one level
    more = _merged(transaction, "INSERT INTO search_words (search_words, rank) VALUES ('merge', ?)", pages)
    return _merged(transaction, "INSERT INTO search_infix (search_infix, rank) VALUES ('merge', ?)", pages) or more


def optimize(connection: Connection) -> None:
    """Merge the indexes completely, however long it takes, and drop words that occur in no text anymore."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("INSERT INTO search_words (search_words) VALUES ('optimize')")
        connection.execute("CREATE VIRTUAL TABLE temp.used_term USING fts5vocab (main, search_words, row)")
        unused = connection.execute("SELECT term FROM search_term WHERE term NOT IN (SELECT term FROM temp.used_term)").fetchall()
        unlearn(connection, [term for (term,) in unused])
        connection.execute("DROP TABLE temp.used_term")
        connection.execute("INSERT INTO search_infix (search_infix) VALUES ('optimize')")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _merged(transaction: Transaction, statement: str, pages: int) -> bool:
    before = transaction.row("SELECT total_changes()")[0]
    transaction.execute(statement, (pages,))
    return transaction.row("SELECT total_changes()")[0] - before > 1
