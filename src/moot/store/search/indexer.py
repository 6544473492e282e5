"""Changes to the rows of the index: adding and removing messages, and merging."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from moot.store.database.connection import Connection, Queries
from moot.store.database.transaction import Transaction
from moot.store.log.events import Events
from moot.store.rows import LISTED_AGENT_OF_C, MESSAGE, compressed, message_of
from moot.store.search.documents import Document, conversation_fact, document_of, owner_fact
from moot.store.search.semantic import forget_vectors
from moot.store.search.text import distinct, indexable
from moot.store.search.vocabulary import learn, unlearn
from moot.types.canonical import dumps

_BATCH = 512
_BATCH_CHARACTERS = 512 << 10
_BULK = 4  # factor for the batch size in bulk mode
_SLICE = 64
_SLICE_CHARACTERS = 64 << 10
_TIE_BITS = 20
_REMEMBERED = 400_000  # maximum number of cached words of the vocabulary
_PENDING = (
    f"SELECT {MESSAGE}, m.no, {LISTED_AGENT_OF_C}, c.model, c.owner_id FROM message AS m JOIN conversation AS c ON c.no = m.conversation"
    " WHERE m.is_indexed = 0 AND m.status IN ('finished', 'failed', 'cancelled') AND m.no NOT IN (SELECT value FROM json_each(?)) LIMIT ?"
)
_LEFT = "SELECT m.no FROM json_each(?) AS e JOIN message AS m ON m.no = e.value ->> 0 AND m.last_seq = e.value ->> 1 WHERE m.is_indexed = 0"
_USED = (  # entries that an old version of SQLite can't remove have no row in `search`
    "SELECT id FROM search_words_docsize WHERE id IN (SELECT value FROM json_each(?1))"
    " UNION SELECT no FROM search WHERE no IN (SELECT value FROM json_each(?1))"
)
_UNPACKED = "SELECT no, parts FROM message WHERE no IN (SELECT value FROM json_each(?)) AND substr(parts, 1, 1) = x'5b'"
_PACK = "UPDATE message SET parts = ? WHERE no = ?"
_MARK = "UPDATE message SET is_indexed = 1 WHERE no IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Entry:
    """A message to index."""

    no: int
    last_seq: int
    """Last seq of the message when it was read; if the message has grown since, it is read again."""
    place: int
    conversation: int
    at: int
    document: Document
    indexed: tuple[str, ...]
    """The columns in the form that FTS5 indexes."""
    words: set[str]
    """Words that were not in the vocabulary when the message was read."""

    @property
    def about(self) -> tuple[str, str, str]:
        return self.document.agent, self.document.model, self.document.facts


def pending(
    connection: Connection, events: Events, besides: Sequence[Entry] = (), *, known: Set[str] = frozenset(), bulk: bool = False
) -> list[Entry]:
    """Return a batch of unindexed messages in index order, except `besides`, which are already being indexed.

    `bulk` makes the batch larger. Words in `known` are left out of the entries, because words take more memory than the text.
    """
    found: list[Entry] = []
    size, times = 0, _BULK if bulk else 1
    for row in connection.execute(_PENDING, (dumps([entry.no for entry in besides]).decode(), _BATCH * times)):
        message = events.folded(connection, message_of(row), row[13])
        no, agent, model, owner = row[14:18]
        document = document_of(message, agent, model, (conversation_fact(row[13]), owner_fact(owner)))
        place = message.created_at // 1000 << _TIE_BITS | no & (1 << _TIE_BITS) - 1
        texts = (document.text, document.tools, document.reasoning)
        indexed = tuple(map(indexable, texts))
        words = distinct(indexed[0])
        for text in indexed[1:]:
            if text:
                words |= distinct(text)
        found.append(Entry(no, row[10], place, row[13], message.created_at, document, indexed, words - known))
        size += sum(map(len, texts))
        if size > _BATCH_CHARACTERS * times:
            break
    return sorted(found, key=lambda entry: entry.place)


class Filler:
    """The part of the indexer that adds entries to the index. `fill` runs on the writer's thread."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    @property
    def known(self) -> Set[str]:
        """Cached words that are known to be in the vocabulary."""
        return self._known

    def fill(self, entries: Sequence[Entry], seconds: float, transaction: Transaction) -> int:
        """Add entries for about `seconds`, but at least one batch. Return the number of added entries."""
        until = time.monotonic() + seconds
        fresh: set[str] = set()
        put: list[int] = []
        count = 0
        while count < len(entries) and (not count or time.monotonic() < until):
            end, size = count, 0
            while end < len(entries) and end - count < _SLICE and size < _SLICE_CHARACTERS:
                size += sum(map(len, entries[end].indexed))
                end += 1
            some = entries[count:end]
            count += len(some)
            for entry in _put(transaction, some):
                fresh |= entry.words
                put.append(entry.no)
        # all at once: FTS5 flushes for each statement that changes several rows, and each flush is a segment to merge
        numbers = dumps(put).decode()
        transaction.execute(_MARK, (numbers,))
        # only now, because parts of a message that is still written change often
        packed = [(data, no) for no, parts in transaction.execute(_UNPACKED, (numbers,)) if (data := compressed(parts)) is not parts]
        if packed:
            transaction.many(_PACK, packed)
        learn(transaction, fresh - self._known)
        _update_heads(transaction, {entry.conversation for entry in entries[:count]})
        return count

    def filled(self, entries: Sequence[Entry]) -> None:
        """Cache the words of committed entries."""
        if len(self._known) > _REMEMBERED:
            self.forget()
        self._known.update(*(entry.words for entry in entries))

    def forget(self) -> None:
        """Clear the cache, because words may have been purged."""
        self._known = set()


def take_out(queries: Queries, message: int, *, purged: bool = False) -> None:
    """Remove a message from the index, if present. If `purged` is set, none of its words remains once the index is merged."""
    rows = queries.execute(
        "SELECT s.no, EXISTS (SELECT 1 FROM search_words WHERE rowid = s.no) FROM search AS s WHERE s.message = ?", (message,)
    ).fetchall()
    if not rows:
        return
    no, is_there = rows[0]
    if purged or is_there:  # the whole index was emptied by an upgrade, which changes no text, so vectors stay valid
        forget_vectors(queries, message)
    if is_there and _forgets_words(queries):
        queries.execute("DELETE FROM search_words WHERE rowid = ?", (no,))
    elif is_there and purged:
        _empty(queries)
    queries.execute("DELETE FROM search WHERE no = ?", (no,))


def _forgets_words(queries: Queries) -> bool:
    """Return False if an old version of SQLite created the index, so that single entries can't be removed."""
    sql = "SELECT instr(sql, 'contentless_delete') > 0 FROM sqlite_schema WHERE name = 'search_words'"
    return bool(queries.execute(sql).fetchall()[0][0])


def _empty(queries: Queries) -> None:
    """Empty the index; all messages are indexed again in the background."""
    queries.execute("INSERT INTO search_words (search_words) VALUES ('delete-all')")
    queries.execute("INSERT INTO search_infix (search_infix) VALUES ('delete-all')")
    queries.execute("DELETE FROM search_term")
    queries.execute("UPDATE message SET is_indexed = 0 WHERE is_indexed = 1")


def _put(transaction: Transaction, entries: Sequence[Entry]) -> list[Entry]:
    numbers = dumps([entry.no for entry in entries]).decode()
    left = transaction.execute(_LEFT, (dumps([(entry.no, entry.last_seq) for entry in entries]).decode(),)).fetchall()
    ours = {row[0] for row in left}
    old = transaction.execute("SELECT message FROM search WHERE message IN (SELECT value FROM json_each(?))", (numbers,)).fetchall()
    for row in old:  # the old version of a message that has grown
        take_out(transaction, row[0])
    taken = [entry for entry in entries if entry.no in ours]
    places = _free(transaction, [entry.place for entry in taken])
    rows = list(zip(places, taken, strict=True))
    transaction.many(
        "INSERT INTO search (no, message, conversation, at, cost) VALUES (?, ?, ?, ?, ?)",
        [(place, entry.no, entry.conversation, entry.at, entry.document.cost) for place, entry in rows],
    )
    transaction.many(
        "INSERT INTO search_words (rowid, text, tools, reasoning, agent, model, facts) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(place, *entry.indexed, *entry.about) for place, entry in rows],
    )
    return taken


def _free(transaction: Transaction, places: list[int]) -> list[int]:
    """Return a free index position for each given position: the same, or the next free one if a message of the same second uses it."""
    found = transaction.execute(_USED, (dumps(places).decode(),)).fetchall()
    used = {row[0] for row in found}
    free: list[int] = []
    for wanted in places:
        place = wanted
        while place in used or (place != wanted and transaction.row(_USED, (f"[{place}]",))):
            place += 1
        used.add(place)
        free.append(place)
    return free


def _update_heads(transaction: Transaction, conversations: set[int]) -> None:
    for conversation in conversations:
        transaction.execute(
            "UPDATE log_head SET indexed_through = coalesce((SELECT min(first_seq) - 1 FROM message"
            " WHERE conversation = ?1 AND is_indexed = 0), next_seq - 1) WHERE conversation = ?1",
            (conversation,),
        )


_PAGES = 200  # index pages merged at a time: a few milliseconds


def unindex(transaction: Transaction, message: str) -> bool:
    """Remove a message from the index and return True if it was indexed. Unless the message is deleted too, it is indexed again later."""
    row: Any = transaction.row("SELECT m.no, s.no FROM message AS m LEFT JOIN search AS s ON s.message = m.no WHERE m.id = ?", (message,))
    if row is None:
        return False
    take_out(transaction, row[0], purged=True)
    transaction.execute("UPDATE message SET is_indexed = 0 WHERE no = ? AND is_indexed = 1", (row[0],))
    return row[1] is not None


def unindex_all(transaction: Transaction, conversation: int) -> int:
    """Remove a conversation's messages from the index and return how many were indexed."""
    rows = transaction.execute("SELECT message FROM search WHERE conversation = ?", (conversation,)).fetchall()
    for (message,) in rows:
        take_out(transaction, message, purged=True)
    return len(rows)


def merge_some(first: bool, transaction: Transaction) -> bool:
    """Merge the indexes one step further; removed words disappear when they are fully merged. Return False when done."""
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
