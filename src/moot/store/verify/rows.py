"""The rows of the log in stored form, from segments and the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from moot.store import segments
from moot.store.connect import Queries
from moot.store.rows import EVENT, kept
from moot.store.stored import LAST_SEQ, Row
from moot.store.transaction import SEQ_BITS
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk

__all__ = ["Row", "log_rows", "read_chunks", "read_object"]


def log_rows(queries: Queries, conversation: int, after: int, through: int = LAST_SEQ) -> Iterator[Row]:
    """Yield the rows after `after`, in order: first from segments, then from the table. Consume it within one snapshot."""
    head: Any = queries.execute("SELECT sealed_through FROM log_head WHERE conversation = ?", (conversation,)).fetchone()
    sealed = head[0] if head is not None else 0
    if sealed > after:
        for row in segments.rows(queries, conversation, after, min(through, sealed)):
            yield segments.whole(row)
    base = conversation << SEQ_BITS
    found: Iterator[Any] = queries.execute(
        f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base + max(after, sealed), base + through)
    )
    for row in found:
        yield Row(*row)


def read_chunks(data: bytes) -> tuple[Chunk, ...]:
    """Raise ValueError if the data is not a list of chunks."""
    if data == b"[]":
        return ()
    value = kept(data)
    if not isinstance(value, list) or not all(isinstance(chunk, dict) and isinstance(chunk.get("type"), str) for chunk in value):
        raise ValueError("expected a list of chunks")
    return tuple(cast("list[Chunk]", value))


def read_object(data: bytes | None) -> JsonObject:
    """Return a body if it is an object, else an empty one. Raise ValueError for invalid JSON."""
    value: Json = kept(data) if data is not None else None
    return value if isinstance(value, dict) else {}
