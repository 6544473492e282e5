"""Semantic search: embedding answers in the background, and comparing all their vectors with the query's vector."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, LiteralString

import anyio
from anyio import to_thread

from moot.errors import UsageError
from moot.store.database.connection import Connection, Queries
from moot.store.database.locks import FileLock
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.rows import parse_stored, parts_of, plain
from moot.store.search.documents import texts_of
from moot.store.search.matches import Scope, SearchOptions, hits_of, scope_of, without_owner_filter
from moot.store.search.query import Condition, Query, parse
from moot.types.canonical import dumps
from moot.types.search import Embedder, Hit, Search, SearchPage, SemanticQuery

_QUESTION, _ANSWER = 500, 1000
"""Maximum characters of question and answer to embed: the beginning shows the topic, and each character costs time."""
_TEXTS: LiteralString = (
    "SELECT s.no, iif(q.deleted_at IS NULL, q.parts, NULL), m.parts FROM search AS s JOIN message AS m ON m.no = s.message"
    " LEFT JOIN message AS q ON q.id = m.parent_id AND q.role = 'user'"
    " WHERE m.role = 'assistant' AND m.is_indexed = 1 AND (q.no IS NULL OR q.is_indexed = 1)"
)
_UNREAD: LiteralString = (
    f"{_TEXTS} AND s.no < ?1 AND NOT EXISTS (SELECT 1 FROM search_vector AS v WHERE v.no = s.no AND v.model = ?2)"
    " ORDER BY s.no DESC LIMIT ?3"
)
_STILL: LiteralString = f"{_TEXTS} AND s.no IN (SELECT value FROM json_each(?1))"


@dataclass(frozen=True, slots=True)
class Unread:
    """An answer without a vector."""

    place: int
    text: str
    """The beginnings of the question and the answer; may be empty."""


def unread(connection: Connection, model: str, before: int, limit: int) -> list[Unread]:
    """Return the newest answers before an index position that have no vector."""
    return [_unread_of(row) for row in connection.execute(_UNREAD, (before, model, limit))]


def put(read: Sequence[tuple[Unread, bytes]], model: str, transaction: Transaction) -> None:
    """Store the vectors of answers whose text has not changed since it was read."""
    places = dumps([each.place for each, _ in read]).decode()
    still = {_unread_of(row) for row in transaction.execute(_STILL, (places,))}
    transaction.many(
        "INSERT OR REPLACE INTO search_vector (no, model, vector) VALUES (?, ?, ?)",
        [(each.place, model, vector) for each, vector in read if each in still],
    )


def forget_vectors(queries: Queries, message: int) -> None:
    """Delete the vectors of a message and of the answers to it."""
    queries.execute(
        "DELETE FROM search_vector WHERE no IN (SELECT no FROM search WHERE message = ?1 OR message IN"
        " (SELECT a.no FROM message AS q JOIN message AS a ON a.parent_id = q.id WHERE q.no = ?1))",
        (message,),
    )


def _unread_of(row: Any) -> Unread:
    return Unread(row[0], f"{_beginning(row[1], _QUESTION)}\n{_beginning(row[2], _ANSWER)}".strip())


def _beginning(parts: bytes | None, length: int) -> str:
    try:
        return "" if parts is None else texts_of(parts_of(parse_stored(plain(parts))))[0][:length]
    except ValueError:
        return ""  # damaged


_TOGETHER = 8192  # number of vectors in memory at once: 3 MB
_ANSWERS = Query(conditions=(Condition("role", ("assistant",)),))


def nearest(connection: Connection, query: Query, asked: SearchOptions, vector: bytes, embedder: Embedder) -> SearchPage:
    """Return the nearest answers, one per conversation, or all answers of `asked.conversation`. Raise UsageError for an unknown project."""
    asked = without_owner_filter(connection, asked)
    done, total = embedded_count(connection, embedder.model, asked)
    scope = scope_of(connection, replace(query, terms=()), asked)
    ranked = sorted(_near(scope, vector, embedder), reverse=True)
    hits: list[Hit] = []
    seen: set[int] = set()
    for _, place, conversation in ranked:
        if len(hits) >= asked.limit:
            break
        if conversation in seen:
            continue
        found = hits_of(scope, [place])  # empty for a deleted message
        hits += found
        if found and asked.conversation is None:
            seen.add(conversation)
    return SearchPage(tuple(hits), done, total)


def embedded_count(connection: Connection, model: str, asked: SearchOptions) -> tuple[int, int]:
    """Return the number of the owner's answers that have a vector, and of all answers."""
    scope = scope_of(connection, _ANSWERS, SearchOptions(owner=asked.owner))
    total = connection.execute("SELECT count(*) FROM search_words WHERE search_words MATCH ?", (scope.match,)).fetchone()[0]
    done = connection.execute(
        "SELECT count(*) FROM search_vector WHERE model = ? AND no IN (SELECT rowid FROM search_words WHERE search_words MATCH ?)",
        (model, scope.match),
    ).fetchone()[0]
    return done, total


def _vectors(checks: LiteralString) -> LiteralString:
    return (
        "SELECT v.no, s.conversation, v.vector FROM search_vector AS v JOIN search AS s ON s.no = v.no"
        " WHERE v.model = ? AND v.vector <> x''"
        f" AND v.no IN (SELECT rowid FROM search_words WHERE search_words MATCH ? AND rowid > ? AND rowid < ?{checks})"
    )


def _near(scope: Scope, vector: bytes, embedder: Embedder) -> Iterator[tuple[float, int, int]]:
    rows = scope.connection.execute(_vectors(scope.checks), (embedder.model, scope.match, *scope.between, *scope.values))
    while some := rows.fetchmany(_TOGETHER):
        near = embedder.near(vector, [row[2] for row in some])
        yield from ((score, row[0], row[1]) for score, row in zip(near, some, strict=True))


_BATCH = 16  # number of answers embedded between two transactions: about a second
_LOOK_AGAIN = 0.1
_END = (1 << 63) - 1


class SqliteSemanticSearch:
    """`SemanticSearch` with vectors that are stored next to the full-text index."""

    def __init__(self, writer: Writer, reader: Reader, lock: FileLock, index: Search, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._lock = lock
        self._index = index
        self._owner = owner

    async def search(self, meant: SemanticQuery, *, embedder: Embedder, wait: float = 2.0) -> SearchPage:
        query = parse(meant.query, now=int(time.time() * 1000))
        if query.patterns:
            raise UsageError("Regular expressions can't be used in a search by meaning.", fix="Omit --meaning, or search for words.")
        asked = SearchOptions(meant.limit, conversation=meant.conversation, owner=self._owner)
        await self._caught_up(embedder, wait)
        if not query.terms:
            done, total = await self._reader.read(partial(embedded_count, model=embedder.model, asked=asked))
            return SearchPage((), done, total)
        words = meant.query if query == Query(query.terms) else " ".join(query.terms)  # without operators
        vector = await to_thread.run_sync(partial(embedder.embed, words, question=True))
        return await self._reader.read(partial(nearest, query=query, asked=asked, vector=vector, embedder=embedder))

    async def read(self, *, embedder: Embedder, seconds: float = 30.0, share: float = 1.0) -> tuple[int, int]:
        if await self._reader.call(lambda: self._lock.take(wait=False)):
            try:
                await self._read(embedder, time.monotonic() + seconds, share)
            finally:
                self._lock.release()
        return await self._reader.read(partial(embedded_count, model=embedder.model, asked=SearchOptions(owner=self._owner)))

    async def _caught_up(self, embedder: Embedder, seconds: float) -> None:
        until = time.monotonic() + seconds
        await self._index.index(seconds=seconds)
        while True:
            done, total = await self.read(embedder=embedder, seconds=until - time.monotonic())
            if done >= total or time.monotonic() + _LOOK_AGAIN > until:
                return
            await anyio.sleep(_LOOK_AGAIN)

    async def _read(self, embedder: Embedder, until: float, share: float) -> None:
        before = _END
        while time.monotonic() < until:
            some = await self._reader.read(partial(unread, model=embedder.model, before=before, limit=_BATCH))
            if not some:
                return
            before = some[-1].place
            embedded: list[tuple[Unread, bytes]] = []
            for each in some:
                if embedded and time.monotonic() > until:
                    break
                started = time.monotonic()
                vector = await to_thread.run_sync(partial(embedder.embed, each.text, question=False)) if each.text else b""
                embedded.append((each, vector))
                await anyio.sleep((time.monotonic() - started) * (1 / share - 1))
            await self._writer.write(partial(put, embedded, embedder.model))
