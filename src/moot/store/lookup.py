"""Finds rows by what people and programs call them, inside any transaction."""

from __future__ import annotations

from typing import Any, LiteralString

from moot.errors import NotFound
from moot.store.connect import Queries
from moot.store.rows import CONVERSATION, MESSAGE, RUN, RUN_TABLES, conversation_of, run_of
from moot.types.conversation import Conversation
from moot.types.run import Run

__all__ = ["conversation", "conversation_by", "find_conversation", "message_row", "run"]

SHORTEST_PREFIX = 4
_HIGHEST = "\U0010ffff"
_CANDIDATES = 5


def conversation_by(queries: Queries, where: LiteralString, value: object) -> Conversation | None:
    row = queries.execute(f"SELECT {CONVERSATION} FROM conversation WHERE {where} = ?", (value,)).fetchone()
    return None if row is None else conversation_of(row)


def conversation(queries: Queries, id: str) -> Conversation:
    """By its exact id. Raises NotFound."""
    found = conversation_by(queries, "id", id)
    if found is None:
        raise NotFound(f"no conversation with the id {id!r}")
    return found


def find_conversation(queries: Queries, reference: str) -> Conversation:
    """By id, client id, unique prefix or exact title; deleted ones only when nothing else fits. Raises NotFound."""
    exact = conversation_by(queries, "id", reference) or conversation_by(queries, "client_id", reference)
    if exact is not None:
        return exact
    tries: list[tuple[str, tuple[str, ...]]] = [("title = ?", (reference,))]
    if len(reference) >= SHORTEST_PREFIX:
        tries.insert(0, ("id >= ? AND id < ?", (reference, reference + _HIGHEST)))
    for deleted in ("deleted_at IS NULL", "deleted_at IS NOT NULL"):
        for where, values in tries:
            rows = queries.execute(
                f"SELECT {CONVERSATION} FROM conversation WHERE {where} AND {deleted} ORDER BY updated_at DESC LIMIT {_CANDIDATES}", values
            ).fetchall()
            if len(rows) == 1:
                return conversation_of(rows[0])
            if rows:
                raise NotFound(_several(reference, [conversation_of(row) for row in rows]), fix="give more of the id")
    raise NotFound(f"no conversation {reference!r}: no id begins so, and no title is that", fix="see `moot chat list`")


def _several(reference: str, found: list[Conversation]) -> str:
    return f"{reference!r} fits several conversations: " + ", ".join(f"{each.id} ({each.title!r})" for each in found)


def message_row(queries: Queries, id: str) -> Any:
    """A row of `MESSAGE`. Raises NotFound."""
    row = queries.execute(
        f"SELECT {MESSAGE} FROM message AS m JOIN conversation AS c ON c.no = m.conversation WHERE m.id = ?", (id,)
    ).fetchone()
    if row is None:
        raise NotFound(f"no message with the id {id!r}")
    return row


def run(queries: Queries, reference: str) -> Run:
    """By id or unique prefix. Raises NotFound."""
    row = queries.execute(f"SELECT {RUN} FROM {RUN_TABLES} WHERE r.id = ?", (reference,)).fetchone()
    if row is not None:
        return run_of(row)
    rows: list[Any] = []
    if len(reference) >= SHORTEST_PREFIX:
        rows = queries.execute(
            f"SELECT {RUN} FROM {RUN_TABLES} WHERE r.id >= ? AND r.id < ? LIMIT {_CANDIDATES}", (reference, reference + _HIGHEST)
        ).fetchall()
    if len(rows) == 1:
        return run_of(rows[0])
    if rows:
        raise NotFound(f"{reference!r} fits several runs: {', '.join(each[0] for each in rows)}", fix="give more of the id")
    raise NotFound(f"no run with the id {reference!r}")
