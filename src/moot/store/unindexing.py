"""Taking messages out of the search index for good: their words too, unless another message has them."""

from __future__ import annotations

from typing import Any

from moot.store.connect import Connection
from moot.store.searching.filling import take_out
from moot.store.searching.vocabulary import unlearn
from moot.store.transaction import Transaction

__all__ = ["merge_some", "optimize", "unindex", "unindex_all"]

_PAGES = 200
"""Of an index, merged in one go: some milliseconds."""


def unindex(transaction: Transaction, message: str) -> bool:
    """Whether it was in the index; it is taken up anew where it is still there."""
    row: Any = transaction.row("SELECT m.no, s.no FROM message AS m LEFT JOIN search AS s ON s.message = m.no WHERE m.id = ?", (message,))
    if row is None:
        return False
    take_out(transaction, row[0], purged=True)
    transaction.execute("UPDATE message SET is_indexed = 0 WHERE no = ? AND is_indexed = 1", (row[0],))
    return row[1] is not None


def unindex_all(transaction: Transaction, conversation: int) -> int:
    """How many messages of the conversation were in the index."""
    rows = transaction.execute("SELECT message FROM search WHERE conversation = ?", (conversation,)).fetchall()
    for (message,) in rows:
        take_out(transaction, message, purged=True)
    return len(rows)


def merge_some(first: bool, transaction: Transaction) -> bool:
    """Brings the indexes a little nearer to one piece, in which there is nothing of what was taken out; False when they are there."""
    pages = -_PAGES if first else _PAGES  # the first time all pieces are put on one level
    more = _merged(transaction, "INSERT INTO search_words (search_words, rank) VALUES ('merge', ?)", pages)
    return _merged(transaction, "INSERT INTO search_infix (search_infix, rank) VALUES ('merge', ?)", pages) or more


def optimize(connection: Connection) -> None:
    """Brings the indexes into one piece, however long that takes, and drops words that no text has any more."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("INSERT INTO search_words (search_words) VALUES ('optimize')")
        connection.execute("CREATE VIRTUAL TABLE temp.said USING fts5vocab (main, search_words, row)")
        unsaid = connection.execute("SELECT term FROM search_term WHERE term NOT IN (SELECT term FROM temp.said)").fetchall()
        unlearn(connection, [term for (term,) in unsaid])
        connection.execute("DROP TABLE temp.said")
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
