"""Translations of old exchanges by newer converters, which replace the chunks of the log for readers. The log itself never changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.store.connect import Queries
from moot.store.rows import kept, kept_object
from moot.types.canonical import JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import converter_of

__all__ = ["Translated", "laid_over", "newest_of", "written"]


@dataclass(slots=True)
class Translated:
    """The newest translation of one exchange, read in batches."""

    exchange: str
    converter: str
    _last: int = 0
    """Last seq of the current batch."""
    _chunks: dict[int, tuple[Chunk, ...]] | None = None

    def chunks(self, queries: Queries, seq: int) -> tuple[Chunk, ...] | None:
        """Return the new chunks of an event, or None if they did not change. Call it in the order of the log."""
        if self._chunks is None or seq > self._last:
            row: Any = queries.execute(
                "SELECT last_seq, chunks FROM translation WHERE exchange = ? AND converter = ? AND last_seq >= ?"
                " ORDER BY first_seq LIMIT 1",
                (self.exchange, self.converter, seq),
            ).fetchone()
            self._last, self._chunks = (1 << 32, {}) if row is None else (row[0], _read(row[1]))
        return self._chunks.get(seq)

    def ending(self, queries: Queries) -> JsonObject:
        """Return the exchange's ending according to that converter, as in `Ending.to_json`."""
        row: Any = queries.execute(
            "SELECT ending FROM translation WHERE exchange = ? AND converter = ? AND ending IS NOT NULL", (self.exchange, self.converter)
        ).fetchone()
        return {} if row is None else kept_object(row[0])


def newest_of(queries: Queries, exchange: str) -> Translated | None:
    """Return the newest translation of an exchange, or None if it was translated only once."""
    found: Any = queries.execute("SELECT DISTINCT converter FROM translation WHERE exchange = ?", (exchange,)).fetchall()
    names = [str(row[0]) for row in found]
    return Translated(exchange, max(names, key=lambda name: converter_of(name).version)) if names else None


def laid_over(queries: Queries, conversation: int, events: Sequence[Event]) -> list[Event]:
    """Return the events with the chunks of their newest translations."""
    if not events:
        return []
    rows: Any = queries.execute(
        "SELECT exchange, converter, chunks FROM translation WHERE conversation = ? AND last_seq >= ? AND first_seq <= ?",
        (conversation, events[0].seq, events[-1].seq),
    ).fetchall()
    newest: dict[str, int] = {}
    for exchange, converter, _ in rows:
        newest[exchange] = max(newest.get(exchange, 0), converter_of(converter).version)
    chunks: dict[int, tuple[Chunk, ...]] = {}
    for exchange, converter, data in rows:
        if newest[exchange] == converter_of(converter).version:
            chunks |= _read(data)
    return [event._replace(chunks=chunks[event.seq]) if event.seq in chunks else event for event in events]


def _read(data: bytes) -> dict[int, tuple[Chunk, ...]]:
    try:
        value = kept(data)
    except ValueError:
        return {}  # fall back to the log
    found: dict[int, tuple[Chunk, ...]] = {}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int) and isinstance(entry[1], list):
            found[entry[0]] = tuple([chunk for chunk in entry[1] if isinstance(chunk, dict)])
    return found


def written(changed: Sequence[tuple[int, tuple[Chunk, ...]]]) -> bytes:
    """Serialize a batch for storage."""
    return dumps([(seq, chunks) for seq, chunks in changed])
