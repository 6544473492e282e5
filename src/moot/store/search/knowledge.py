"""The index of documents: sources, chunks, their words (FTS5) and their vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, LiteralString

import anyio
from anyio import to_thread

from moot.errors import NotFound
from moot.store.database.connection import Connection, Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction, quick
from moot.store.database.writer import Writer
from moot.store.lookup import prefix_range
from moot.store.search.text import phrase, spaced
from moot.types.canonical import dumps
from moot.types.knowledge import Chunk, IndexedDocument, KnowledgeHit, KnowledgeScope, Source
from moot.types.search import Embedder

_SOURCES: LiteralString = (
    "SELECT s.id, s.path, s.project_id, s.kind, s.added_at, count(d.no), count(d.no) FILTER (WHERE d.problem <> ''),"
    " coalesce(sum((SELECT count(*) FROM knowledge_chunk AS c WHERE c.document = d.no)), 0)"
    " FROM knowledge_source AS s LEFT JOIN knowledge_document AS d ON d.source = s.no WHERE (?1 IS NULL OR s.owner_id = ?1)"
)
_IN_SCOPE: LiteralString = (
    " AND ((s.kind <> 'folder' AND s.project_id IN ('', ?2)) OR (s.kind = 'folder' AND s.path IN (SELECT value FROM json_each(?3))))"
)
_CHUNKS: LiteralString = (
    "SELECT c.no, d.path, c.place, c.heading, c.text FROM knowledge_chunk AS c JOIN knowledge_document AS d ON d.no = c.document"
    " JOIN knowledge_source AS s ON s.no = d.source"
)
_OWN: LiteralString = f"(?1 IS NULL OR s.owner_id = ?1){_IN_SCOPE}"
_CONTENTS: LiteralString = (
    "SELECT c.no, d.path, c.heading, c.text FROM knowledge_chunk AS c JOIN knowledge_document AS d ON d.no = c.document"
)
_CANDIDATES = 50
"""Number of chunks that each search method contributes."""
_CONSTANT = 60
"""The constant of reciprocal rank fusion (Cormack and others, 2009)."""
_TOGETHER = 8192
_BATCH = 16
_PASSAGE = 1500
"""Number of characters of a chunk that are embedded."""


class SqliteKnowledge:
    """The SQLite implementation of `Knowledge`; an `owner` of None means all owners."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def sources(self, scope: KnowledgeScope | None = None) -> list[Source]:
        end: LiteralString = " GROUP BY s.no ORDER BY s.path, s.no"
        values = (self._owner,) if scope is None else _values(self._owner, scope)
        return await self._reader.rows(f"{_SOURCES}{_IN_SCOPE if scope is not None else ''}{end}", values, lambda row: Source(*row))

    async def add(self, source: Source) -> Source:
        owner = self._owner or "local"

        def work(transaction: Transaction) -> Source:
            transaction.execute(
                "INSERT INTO knowledge_source (id, owner_id, project_id, kind, path, added_at) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (owner_id, project_id, kind, path) DO NOTHING",
                (source.id, owner, source.project, source.kind, source.path, transaction.now_ms),
            )
            found = (owner, source.project, source.kind, source.path)
            where: LiteralString = " AND s.project_id = ?2 AND s.kind = ?3 AND s.path = ?4 GROUP BY s.no"
            return Source(*transaction.row(f"{_SOURCES}{where}", found))

        return await self._writer.write(work, sync=True)

    async def remove(self, id: str) -> None:
        await self._writer.write(lambda transaction: _remove(transaction, _source(transaction, id, self._owner)), sync=True)

    async def documents(self, source: str) -> list[IndexedDocument]:
        def work(connection: Connection) -> list[IndexedDocument]:
            rows = connection.execute(
                "SELECT path, size, changed_ns, digest, problem FROM knowledge_document WHERE source = ? ORDER BY path",
                (_source(connection, source, self._owner),),
            )
            return [IndexedDocument(path, size, at, bytes(digest), problem) for path, size, at, digest, problem in rows]

        return await self._reader.read(work)

    async def put(self, source: str, document: IndexedDocument, chunks: Sequence[Chunk] | None) -> None:
        # split the words outside the transaction, so that this does not block the writer
        words = None if chunks is None else await to_thread.run_sync(_words, document.path, chunks)

        def work(transaction: Transaction) -> None:
            facts = (document.size, document.changed_ns, quick(document.digest), document.problem)
            (no,) = transaction.row(
                "INSERT INTO knowledge_document (source, path, size, changed_ns, digest, problem) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (source, path) DO UPDATE SET size = excluded.size, changed_ns = excluded.changed_ns,"
                " digest = excluded.digest, problem = excluded.problem RETURNING no",
                (_source(transaction, source, self._owner), document.path, *facts),
            )
            if chunks is None or words is None:
                return
            _forget(transaction, [no])
            (last,) = transaction.row("SELECT coalesce(max(no), 0) FROM knowledge_chunk")
            rows = [(last + at, no, chunk.place, chunk.heading, chunk.text) for at, chunk in enumerate(chunks, 1)]
            transaction.many("INSERT INTO knowledge_chunk (no, document, place, heading, text) VALUES (?, ?, ?, ?, ?)", rows)
            transaction.many(
                "INSERT INTO knowledge_words (rowid, path, heading, text) VALUES (?, ?, ?, ?)",
                [(last + at, *each) for at, each in enumerate(words, 1)],
            )

        await self._writer.write(work)

    async def drop(self, source: str, paths: Sequence[str]) -> None:
        def work(transaction: Transaction) -> None:
            values = (_source(transaction, source, self._owner), dumps(list(paths)).decode())
            where: LiteralString = "WHERE source = ? AND path IN (SELECT value FROM json_each(?))"
            _forget(transaction, [row[0] for row in transaction.execute(f"SELECT no FROM knowledge_document {where}", values).fetchall()])
            transaction.execute(f"DELETE FROM knowledge_document {where}", values)

        await self._writer.write(work)

    async def search(self, query: str, scope: KnowledgeScope, *, limit: int, embedder: Embedder | None = None) -> list[KnowledgeHit]:
        vector = None if embedder is None else await to_thread.run_sync(partial(embedder.embed, query, question=True))

        def work(connection: Connection) -> list[KnowledgeHit]:
            values = _values(self._owner, scope)
            ways = {"words": _by_words(connection, query, values)}
            if embedder is not None and vector:
                ways["meaning"] = _by_meaning(connection, vector, embedder, values)
            scores: dict[int, float] = {}
            for ranked in ways.values():
                for rank, no in enumerate(ranked, 1):
                    scores[no] = scores.get(no, 0.0) + 1 / (_CONSTANT + rank)
            best = sorted(scores, key=lambda no: -scores[no])
            rows = connection.execute(f"{_CHUNKS} WHERE c.no IN (SELECT value FROM json_each(?))", (dumps(best).decode(),))
            found = {row[0]: row[1:] for row in rows}
            once = list({found[no]: no for no in reversed(best)}.values())[::-1]  # a file may be in several sources
            named = {no: tuple(way for way, ranked in ways.items() if no in ranked) for no in once[:limit]}
            return [KnowledgeHit(*found[no], score=scores[no], by=by) for no, by in named.items()]

        return await self._reader.read(work)

    async def embed(self, embedder: Embedder, *, seconds: float, share: float = 1.0) -> tuple[int, int]:
        until = time.monotonic() + seconds
        where: LiteralString = (
            " WHERE (?1 IS NULL OR s.owner_id = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM knowledge_vector AS v WHERE v.no = c.no AND v.model = ?2) LIMIT ?3"
        )
        while time.monotonic() < until:
            rows = await self._reader.rows(f"{_CHUNKS}{where}", (self._owner, embedder.model, _BATCH), tuple)
            if not rows:
                break
            made: list[tuple[int, str, bytes]] = []
            for no, path, _, heading, text in rows:
                started = time.monotonic()
                passage = f"{PurePath(path).stem} {heading}\n{text}"[:_PASSAGE]
                made.append((no, text, await to_thread.run_sync(partial(embedder.embed, passage, question=False))))
                await anyio.sleep((time.monotonic() - started) * (1 / share - 1))
                if time.monotonic() > until:
                    break
            await self._writer.write(partial(_put_vectors, made, embedder.model))
        done: LiteralString = (
            "SELECT count(*), count(v.no) FROM knowledge_chunk AS c LEFT JOIN knowledge_vector AS v ON v.no = c.no AND v.model = ?"
        )
        found = await self._reader.row(done, (embedder.model,), lambda row: (row[1], row[0]))
        return found or (0, 0)


def _values(owner: str | None, scope: KnowledgeScope) -> tuple[object, ...]:
    return owner, scope.project, dumps(list(scope.folders)).decode()


def _source(queries: Queries | Transaction, id: str, owner: str | None) -> int:
    """Return the number of a source by its id, the beginning of the id, or its path. Raise NotFound if none or several match."""
    own: LiteralString = "SELECT no FROM knowledge_source WHERE (?1 IS NULL OR owner_id = ?1)"
    for where, values in ((" AND id = ?2", (id,)), (" AND path = ?2", (id,)), (" AND id >= ?2 AND id < ?3", prefix_range(id))):
        rows = queries.execute(f"{own}{where} LIMIT 2", (owner, *values)).fetchall()
        if len(rows) > 1:
            raise NotFound(f"{id!r} matches several sources.", fix="Use the full id; see `moot knowledge list --json`.")
        if rows:
            return int(rows[0][0])
    raise NotFound(f"No document source matches {id!r}.", fix="See `moot knowledge list`.")


def _remove(transaction: Transaction, source: int) -> None:
    documents = [row[0] for row in transaction.execute("SELECT no FROM knowledge_document WHERE source = ?", (source,)).fetchall()]
    _forget(transaction, documents)
    transaction.execute("DELETE FROM knowledge_document WHERE source = ?", (source,))
    transaction.execute("DELETE FROM knowledge_source WHERE no = ?", (source,))


def move_sources(transaction: Transaction, project: str, to: str) -> None:
    """Move the sources of a project to the project `to`, and remove those that `to` already has."""
    transaction.execute("UPDATE OR IGNORE knowledge_source SET project_id = ? WHERE project_id = ?", (to, project))
    for (source,) in transaction.execute("SELECT no FROM knowledge_source WHERE project_id = ?", (project,)).fetchall():
        _remove(transaction, source)


def _words(path: str, chunks: Sequence[Chunk]) -> list[tuple[str, str, str]]:
    name = spaced(PurePath(path).name)
    return [(name, spaced(chunk.heading), spaced(chunk.text)) for chunk in chunks]


def _forget(transaction: Transaction, documents: Sequence[int]) -> None:
    """Delete the chunks of some documents. To remove a chunk, FTS5 needs its words."""
    chosen: LiteralString = "(SELECT value FROM json_each(?))"
    values = (dumps(list(documents)).decode(),)
    rows: list[Any] = transaction.execute(f"{_CONTENTS} WHERE d.no IN {chosen}", values).fetchall()
    transaction.many(
        "INSERT INTO knowledge_words (knowledge_words, rowid, path, heading, text) VALUES ('delete', ?, ?, ?, ?)",
        [(no, spaced(PurePath(path).name), spaced(heading), spaced(text)) for no, path, heading, text in rows],
    )
    numbers = (dumps([row[0] for row in rows]).decode(),)
    transaction.execute(f"DELETE FROM knowledge_vector WHERE no IN {chosen}", numbers)
    transaction.execute(f"DELETE FROM knowledge_chunk WHERE no IN {chosen}", numbers)


def rebuild_words(transaction: Transaction) -> None:
    """Index all chunks again after changes to their texts, and delete their vectors."""
    transaction.execute("INSERT INTO knowledge_words (knowledge_words) VALUES ('delete-all')")
    transaction.execute("DELETE FROM knowledge_vector")
    rows: list[Any] = transaction.execute(_CONTENTS).fetchall()
    transaction.many(
        "INSERT INTO knowledge_words (rowid, path, heading, text) VALUES (?, ?, ?, ?)",
        [(no, spaced(PurePath(path).name), spaced(heading), spaced(text)) for no, path, heading, text in rows],
    )


def _by_words(connection: Connection, query: str, values: tuple[object, ...]) -> list[int]:
    """Return the best chunks that contain all words or, if there are none, any of the words."""
    phrases = [phrase(term) for term in query.split()[:50] if any(map(str.isalnum, term))]
    sql = (
        "SELECT w.rowid FROM knowledge_words AS w JOIN knowledge_chunk AS c ON c.no = w.rowid JOIN knowledge_document AS d"
        f" ON d.no = c.document JOIN knowledge_source AS s ON s.no = d.source WHERE {_OWN} AND w.knowledge_words MATCH ?4"
        " ORDER BY bm25(w.knowledge_words, 2.0, 2.0, 1.0) LIMIT ?5"
    )
    for joint in (" AND ", " OR ") if phrases else ():
        if rows := connection.execute(sql, (*values, joint.join(phrases), _CANDIDATES)).fetchall():
            return [row[0] for row in rows]
    return []


def _by_meaning(connection: Connection, vector: bytes, embedder: Embedder, values: tuple[object, ...]) -> list[int]:
    sql = (
        "SELECT v.no, v.vector FROM knowledge_vector AS v JOIN knowledge_chunk AS c ON c.no = v.no JOIN knowledge_document AS d"
        f" ON d.no = c.document JOIN knowledge_source AS s ON s.no = d.source WHERE {_OWN} AND v.model = ?4"
    )
    rows = connection.execute(sql, (*values, embedder.model))
    near: list[tuple[float, int]] = []
    while some := rows.fetchmany(_TOGETHER):
        near += zip(embedder.near(vector, [row[1] for row in some]), [row[0] for row in some], strict=True)
        near = sorted(near, reverse=True)[:_CANDIDATES]
    return [no for _, no in near]


def _put_vectors(made: Sequence[tuple[int, str, bytes]], model: str, transaction: Transaction) -> None:
    """Store the vectors of chunks whose text is still the same."""
    transaction.many(
        "INSERT OR REPLACE INTO knowledge_vector (no, model, vector) SELECT no, ?, ? FROM knowledge_chunk WHERE no = ? AND text = ?",
        [(model, quick(vector), no, text) for no, text, vector in made],
    )
