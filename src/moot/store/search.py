"""Full-text search over all conversations, and the indexer that fills it behind everybody's back."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import Any, LiteralString, TypeAlias

import anyio

from moot.errors import UsageError
from moot.store import words
from moot.store.connect import Connection
from moot.store.events import Events
from moot.store.locks import FileLock
from moot.store.reader import Reader
from moot.store.rows import MESSAGE, message_of
from moot.store.transaction import Transaction
from moot.store.writer import LONGEST, Writer
from moot.types.search import Hit, SearchPage

__all__ = ["FullText"]

_BATCH = 64
_BATCH_CHARACTERS = 256 << 10
_LOOK_AGAIN = 0.02
_CURSOR = re.compile(r"s([0-9a-f]{1,16})")
_NEWEST = (1 << 63) - 1
_TIE_BITS = 20
_PENDING = (
    f"SELECT {MESSAGE}, m.no FROM message AS m JOIN conversation AS c ON c.no = m.conversation"
    " WHERE m.is_indexed = 0 AND m.status IN ('finished', 'failed', 'cancelled') LIMIT ?"
)
Within: TypeAlias = tuple[str | None, str | None]
"""A conversation and an owner that hits must be of; None = any."""
Document = tuple[int, int, int, str, str, int, str]
"""Message no, place in the index, conversation no, id, role, ms, text."""


class FullText:
    """`Search` on SQLite's FTS5."""

    def __init__(self, writer: Writer, reader: Reader, lock: FileLock, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._lock = lock
        self._owner = owner
        self._events = Events()

    async def search(
        self, query: str, *, limit: int = 50, cursor: str | None = None, conversation: str | None = None, wait: float = 2.0
    ) -> SearchPage:
        before = _position(cursor)
        parsed = words.parse(query)

        def work(connection: Connection) -> SearchPage:
            hits = _hits(connection, parsed, before, limit + 1, (conversation, self._owner)) if parsed else []
            done, total = self._tally(connection)
            next_cursor = f"s{hits[limit - 1][0]:x}" if len(hits) > limit else None
            return SearchPage(tuple(hit for _, hit in hits[:limit]), done, total, next_cursor)

        page = await self._reader.read(work)
        if page.done < page.total and wait > 0:
            await self._caught_up(wait)
            page = await self._reader.read(work)
        return page

    async def index(self, *, seconds: float = 30.0) -> tuple[int, int]:
        if await self._reader.call(lambda: self._lock.take(wait=False)):
            try:
                until = time.monotonic() + seconds
                while time.monotonic() < until and await self._step():
                    pass
            finally:
                self._lock.release()
        return await self._reader.read(self._tally)

    async def _caught_up(self, seconds: float) -> None:
        """Indexes what is missing, or waits while another process does."""
        until = time.monotonic() + seconds
        while True:
            done, total = await self.index(seconds=until - time.monotonic())
            if done >= total or time.monotonic() + _LOOK_AGAIN > until:
                return
            await anyio.sleep(_LOOK_AGAIN)

    async def _step(self) -> bool:
        """Indexes some messages in one short transaction; False when there are none left."""
        documents = await self._reader.read(self._pending)
        while documents:
            began = time.monotonic()
            documents = documents[await self._writer.write(partial(_index, documents)) :]
            if self._writer.others():  # as long as it took: others want to write too
                await anyio.sleep(time.monotonic() - began)
        return await self._reader.read(_is_pending)

    def _tally(self, connection: Connection) -> tuple[int, int]:
        return _tally(connection) if self._owner is None else _tally_of(connection, self._owner)

    def _pending(self, connection: Connection) -> list[Document]:
        found: list[Document] = []
        size = 0
        for row in connection.execute(_PENDING, (_BATCH,)):
            message = self._events.folded(connection, message_of(row), row[13])
            text = words.found_text(message.parts)
            place = message.created_at << _TIE_BITS | row[14] & (1 << _TIE_BITS) - 1
            found.append((row[14], place, row[13], message.id, message.role, message.created_at, text))
            size += len(text)
            if size > _BATCH_CHARACTERS:
                break
        return sorted(found, key=lambda document: document[1])


def _position(cursor: str | None) -> int:
    if cursor is None:
        return _NEWEST
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise UsageError(f"{cursor!r} is no cursor of a search", fix="take it from the page before, unchanged")
    return int(match[1], 16)


def _tally(connection: Connection) -> tuple[int, int]:
    """How many messages are indexed, and how many could be: those of runs that have not ended can't."""
    rows = dict(connection.execute("SELECT name, value FROM tally").fetchall())
    live = connection.execute("SELECT count(*) FROM run WHERE status IN ('queued', 'running', 'waiting', 'interrupted')").fetchone()[0]
    return rows["indexed"], rows["messages"] - live


def _tally_of(connection: Connection, owner: str) -> tuple[int, int]:
    """The same of one owner's messages."""
    total = connection.execute("SELECT coalesce(sum(message_count), 0) FROM conversation WHERE owner_id = ?", (owner,)).fetchone()[0]
    missing: dict[bool, int] = dict(
        connection.execute(
            "SELECT m.status IN ('finished', 'failed', 'cancelled'), count(*) FROM message AS m"
            " JOIN conversation AS c ON c.no = m.conversation"
            " WHERE m.is_indexed = 0 AND m.deleted_at IS NULL AND c.owner_id = ? GROUP BY 1",
            (owner,),
        ).fetchall()
    )
    could = max(total - missing.get(False, 0), 0)
    return max(could - missing.get(True, 0), 0), could


def _is_pending(connection: Connection) -> bool:
    return connection.execute(_PENDING, (1,)).fetchone() is not None


def _index(documents: list[Document], transaction: Transaction) -> int:
    """How many of them fit into one short transaction."""
    until = time.monotonic() + LONGEST / 2
    count = 0
    for no, place, conversation, message, role, at, text in documents:
        if transaction.execute("UPDATE message SET is_indexed = 1 WHERE no = ? AND is_indexed = 0", (no,)).rowcount == 1:
            inserted = transaction.execute(
                "INSERT INTO search (no, message, conversation, role, at, text) VALUES (?, ?, ?, ?, ?, ?)",
                (place, message, conversation, role, at, text),
            )
            transaction.execute("INSERT INTO search_words (rowid, text) VALUES (?, ?)", (inserted.lastrowid, words.spaced(text)))
            transaction.execute("INSERT INTO search_substrings (rowid, text) VALUES (?, ?)", (inserted.lastrowid, text))
        count += 1
        if time.monotonic() > until:
            break
    for conversation in {document[2] for document in documents[:count]}:
        transaction.execute(
            "UPDATE log_head SET indexed_through = coalesce((SELECT min(first_seq) - 1 FROM message"
            " WHERE conversation = ?1 AND is_indexed = 0), next_seq - 1) WHERE conversation = ?1",
            (conversation,),
        )
    return count


def _hits(connection: Connection, query: words.Query, before: int, wanted: int, within: Within) -> list[tuple[int, Hit]]:
    """Newest first, each with its place in the index."""
    found: list[tuple[int, Hit]] = []
    while len(found) < wanted:
        certain = _places(connection, "search_words", query.words, (0, before), wanted, within)
        # a whole page of words is there already: of the rest only what is newer than its end can still stand on it
        after = min(certain) if len(certain) == wanted else 0
        possible = _places(connection, "search_substrings", query.substrings, (after, before), wanted, within)
        places = sorted(certain | possible, reverse=True)[:wanted]
        for row in _rows(connection, places):
            if row[0] in certain or query.inside(row[6]):
                found.append((row[0], Hit(*row[1:6], snippet=words.snippet(row[6], query.terms))))
        if len(places) < wanted:
            break
        before = places[-1]
    return found[:wanted]


def _rows(connection: Connection, places: list[int]) -> list[Any]:
    """What a hit needs, newest first, without what is deleted."""
    return connection.execute(
        "SELECT s.no, c.id, s.message, c.title, s.role, s.at, s.text FROM search AS s JOIN conversation AS c ON c.no = s.conversation"
        " JOIN message AS m ON m.id = s.message"
        f" WHERE s.no IN ({', '.join('?' * len(places))}) AND c.deleted_at IS NULL AND m.deleted_at IS NULL ORDER BY s.no DESC",
        places,
    ).fetchall()


def _places(connection: Connection, table: LiteralString, match: str, between: tuple[int, int], wanted: int, within: Within) -> set[int]:
    """The newest places between the two, which are left out; none for an empty query."""
    if not match:
        return set()
    values: tuple[object, ...] = (match, *between)
    inside = ""
    conversation, owner = within
    if conversation is not None:
        inside = " AND rowid IN (SELECT s.no FROM search AS s JOIN conversation AS c ON c.no = s.conversation WHERE c.id = ?)"
        values = (*values, conversation)
    if owner is not None:
        inside += (
            f" AND EXISTS (SELECT 1 FROM search AS s JOIN conversation AS c ON c.no = s.conversation"
            f" WHERE s.no = {table}.rowid AND c.owner_id = ?)"
        )
        values = (*values, owner)
    rows = connection.execute(
        f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid > ? AND rowid < ?{inside} ORDER BY rowid DESC LIMIT ?",
        (*values, wanted),
    )
    return {row[0] for row in rows}
