"""The rows of the log as they are stored, wherever they lie, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from moot.store import segments
from moot.store.connect import Queries
from moot.store.rows import EVENT, kept
from moot.store.transaction import SEQ_BITS, checksum
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk

__all__ = ["Row", "log_rows", "read_chunks", "read_object"]

LAST_SEQ = (1 << SEQ_BITS) - 1


class Row(NamedTuple):
    """One row of `event`, nothing of it read yet."""

    id: int
    at: int
    run: int | None
    exchange: str | None
    kind: str
    chunks: bytes
    raw: bytes | None
    phase: str | None
    key: str | None
    body: bytes | None
    check: bytes

    @property
    def seq(self) -> int:
        return self.id & LAST_SEQ

    def is_sound(self) -> bool:
        """Whether its own check fits it."""
        return checksum(self.seq, self.kind, self.chunks, self.raw, self.phase, self.key, self.body) == self.check

    def exchange_id(self, run: str | None) -> str | None:
        """The exchange's whole id; `run` is the id of the run it belongs to."""
        if self.exchange is None:
            return None
        return f"{run}{self.exchange[1:]}" if self.exchange[:1] == ":" else self.exchange[1:]


def log_rows(queries: Queries, conversation: int, after: int, through: int = LAST_SEQ) -> Iterator[Row]:
    """The rows behind `after`, in order: of sealed segments first, then of the table. To be taken within one snapshot."""
    head: Any = queries.execute("SELECT sealed_through FROM log_head WHERE conversation = ?", (conversation,)).fetchone()
    sealed = head[0] if head is not None else 0
    if sealed > after:
        for row in segments.rows(queries, conversation, after, min(through, sealed)):
            yield Row(*row)
    base = conversation << SEQ_BITS
    found: Iterator[Any] = queries.execute(
        f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base + max(after, sealed), base + through)
    )
    for row in found:
        yield Row(*row)


def read_chunks(data: bytes) -> tuple[Chunk, ...]:
    """Raises ValueError for what is no list of chunks."""
    if data == b"[]":
        return ()
    value = kept(data)
    if not isinstance(value, list) or not all(isinstance(chunk, dict) and isinstance(chunk.get("type"), str) for chunk in value):
        raise ValueError("a list of chunks was expected")
    return tuple(cast("list[Chunk]", value))


def read_object(data: bytes | None) -> JsonObject:
    """A body that is an object; empty for any other. Raises ValueError for what is no JSON."""
    value: Json = kept(data) if data is not None else None
    return value if isinstance(value, dict) else {}
