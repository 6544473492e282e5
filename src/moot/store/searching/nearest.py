"""Semantic search: compares the vectors of all answers with the question's; there is no index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import LiteralString

from moot.store.connect import Connection
from moot.store.searching.finding import Asked, Scope, hits_of, scope_of, whose
from moot.store.searching.query import Condition, Query
from moot.types.meaning import Embedder
from moot.types.search import Hit, SearchPage

__all__ = ["embedded_count", "nearest"]

_TOGETHER = 8192
"""Number of vectors in memory at once: 3 MB."""
_ANSWERS = Query(conditions=(Condition("role", ("assistant",)),))


def nearest(connection: Connection, query: Query, asked: Asked, vector: bytes, embedder: Embedder) -> SearchPage:
    """Return the nearest answers, one per conversation, or all of `asked.conversation`. Raise UsageError for an unknown project."""
    asked = whose(connection, asked)
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


def embedded_count(connection: Connection, model: str, asked: Asked) -> tuple[int, int]:
    """Return the number of the owner's answers that have a vector, and of all answers."""
    scope = scope_of(connection, _ANSWERS, Asked(owner=asked.owner))
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
    """Yield similarity, place and conversation of each answer."""
    rows = scope.connection.execute(_vectors(scope.checks), (embedder.model, scope.match, *scope.between, *scope.values))
    while some := rows.fetchmany(_TOGETHER):
        near = embedder.near(vector, [row[2] for row in some])
        yield from ((score, row[0], row[1]) for score, row in zip(near, some, strict=True))
