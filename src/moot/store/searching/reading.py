"""Stored vectors of answers, and the answers that have none yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from moot.store.connect import Connection, Queries
from moot.store.transaction import Transaction
from moot.types.canonical import dumps

__all__ = ["Unread", "forget_vectors", "put", "unread"]

_QUESTION, _ANSWER = 500, 1000
"""Maximum characters of question and answer to embed: the beginning shows the topic, and each character costs time."""
_TEXTS: LiteralString = (
    "SELECT s.no, coalesce(substr(asked.text, 1, ?1), ''), substr(t.text, 1, ?2) FROM search AS s JOIN message AS m ON m.no = s.message"
    " JOIN search_text AS t ON t.no = s.no LEFT JOIN message AS q ON q.id = m.parent_id AND q.role = 'user'"
    " LEFT JOIN search AS qs ON qs.message = q.no LEFT JOIN search_text AS asked ON asked.no = qs.no"
    " WHERE m.role = 'assistant' AND (q.no IS NULL OR q.is_indexed = 1)"
)
_UNREAD: LiteralString = (
    f"{_TEXTS} AND s.no < ?3 AND NOT EXISTS (SELECT 1 FROM search_vector AS v WHERE v.no = s.no AND v.model = ?4)"
    " ORDER BY s.no DESC LIMIT ?5"
)
_STILL: LiteralString = f"{_TEXTS} AND s.no IN (SELECT value FROM json_each(?3))"


@dataclass(frozen=True, slots=True)
class Unread:
    """An answer without a vector."""

    place: int
    text: str
    """The beginnings of its question and of the answer; may be empty."""


def unread(connection: Connection, model: str, before: int, limit: int) -> list[Unread]:
    """Return the newest unembedded answers before a place."""
    return [_unread_of(row) for row in connection.execute(_UNREAD, (_QUESTION, _ANSWER, before, model, limit))]


def put(read: Sequence[tuple[Unread, bytes]], model: str, transaction: Transaction) -> None:
    """Store the vectors of answers whose text has not changed since."""
    places = dumps([each.place for each, _ in read]).decode()
    still = {_unread_of(row) for row in transaction.execute(_STILL, (_QUESTION, _ANSWER, places))}
    transaction.many(
        "INSERT OR REPLACE INTO search_vector (no, model, vector) VALUES (?, ?, ?)",
        [(each.place, model, vector) for each, vector in read if each in still],
    )


def forget_vectors(queries: Queries, message: int) -> None:
    """Delete the vector of a message, and those of the answers to it."""
    queries.execute(
        "DELETE FROM search_vector WHERE no IN (SELECT no FROM search WHERE message = ?1 OR message IN"
        " (SELECT a.no FROM message AS q JOIN message AS a ON a.parent_id = q.id WHERE q.no = ?1))",
        (message,),
    )


def _unread_of(row: Any) -> Unread:
    return Unread(row[0], f"{row[1]}\n{row[2]}".strip())
