"""References to blobs, the mark phase of mark and sweep."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, LiteralString

from moot.store import segments
from moot.store.connect import Queries
from moot.store.forgetting.places import PLACES, select
from moot.store.stored import LAST_SEQ
from moot.types.canonical import dumps

__all__ = ["are_blobs", "named_by", "named_in"]

_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_REFERENCES: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("exchange", "request"),
    ("exchange", "options"),
    ("message", "parts"),
    ("message", "metadata"),
    ("run", "settings"),
    ("conversation", "settings"),
    ("conversation", "origin"),
    ("translation", "chunks"),
    ("approval", "arguments"),
    ("approval", "value"),
    ("approval", "edited"),
    ("inbox", "body"),
    ("event", "chunks"),
    ("event", "body"),
)
"""Columns in which a hash refers to a blob; in raw, a vendor only repeats it."""
_WHOSE: dict[LiteralString, LiteralString] = {
    "conversation": "t.owner_id FROM conversation AS t",
    "event": "c.owner_id FROM event AS t JOIN conversation AS c ON c.no = t.id >> 32",
    "approval": "r.owner_id FROM approval AS t JOIN run AS r ON r.id = t.run",
    "inbox": "r.owner_id FROM inbox AS t JOIN run AS r ON r.id = t.run",
}

_OF: dict[LiteralString, LiteralString] = {
    "conversation": "t.no",
    "event": "t.id >> 32",
    "approval": "r.conversation",
    "inbox": "r.conversation",
}


def named_in(queries: Queries, conversation: int) -> set[str]:
    """Return everything that looks like a blob hash in a conversation's data."""
    found: set[str] = set()
    for table, column in _REFERENCES:
        _collect(queries.execute(select(column, table, PLACES[table].of), (conversation,)), found)
    _collect(((data,) for row in segments.rows(queries, conversation, 0, LAST_SEQ) for data in (row[5], row[9])), found)
    return found


def are_blobs(queries: Queries, names: Collection[str]) -> set[str]:
    """Return those of the names that are blobs."""
    found: Any = queries.execute(
        "SELECT b.sha256 FROM json_each(?) AS j JOIN blob AS b ON b.sha256 = j.value", (dumps(sorted(names)).decode(),)
    )
    return {name for (name,) in found.fetchall()}


def named_by(queries: Queries, names: Collection[str], without: Collection[int] = ()) -> set[tuple[str, str]]:
    """Return the names that are referenced, each with the owner of the reference, in the whole store except these conversations."""
    found: set[tuple[str, str]] = set()
    if not names:
        return found
    excluded = {f"{no}" for no in without}
    for table, column in _REFERENCES:
        whose = _WHOSE.get(table) or f"c.owner_id FROM {table} AS t JOIN conversation AS c ON c.no = t.conversation"
        place = _OF.get(table) or "t.conversation"
        for data, no, owner in queries.execute(_reference_sql(column, place, whose)):
            if f"{no}" not in excluded:
                found.update((name, owner) for name in _names(data) if name in names)
    for no, owner, data in _sealed(queries):
        if f"{no}" not in excluded:
            found.update((name, owner) for name in _names(data) if name in names)
    return found


def _reference_sql(column: LiteralString, no: LiteralString, whose: LiteralString) -> LiteralString:
    return f"SELECT t.{column}, {no}, {whose} WHERE t.{column} IS NOT NULL"


def _sealed(queries: Queries) -> Iterator[tuple[int, str, bytes]]:
    conversations: Any = queries.execute(
        "SELECT DISTINCT s.conversation, c.owner_id FROM segment AS s JOIN conversation AS c ON c.no = s.conversation"
    ).fetchall()
    for no, owner in conversations:
        for row in segments.rows(queries, no, 0, LAST_SEQ):
            yield from ((no, owner, data) for data in (row[5], row[9]) if data)


def _collect(rows: Iterable[Any], found: set[str]) -> None:
    for (data,) in rows:
        found.update(_names(data))


def _names(data: bytes | None) -> Iterator[str]:
    return (match.decode() for match in _HASH.findall(data)) if data else iter(())
