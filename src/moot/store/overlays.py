"""What newer converters made of old exchanges, laid over the chunks of the log. The log itself is never changed."""

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
    """The newest translation of one exchange, read a stretch at a time."""

    exchange: str
    converter: str
    _last: int = 0
    """Of the stretch that was read last."""
    _chunks: dict[int, tuple[Chunk, ...]] | None = None

    def chunks(self, queries: Queries, seq: int) -> tuple[Chunk, ...] | None:
        """What that event of the exchange stands for now; None when it stayed as it was. Asked for in the order of the log."""
        if self._chunks is None or seq > self._last:
            row: Any = queries.execute(
                "SELECT last_seq, chunks FROM translation WHERE exchange = ? AND converter = ? AND last_seq >= ?"
                " ORDER BY first_seq LIMIT 1",
                (self.exchange, self.converter, seq),
            ).fetchone()
            self._last, self._chunks = (1 << 32, {}) if row is None else (row[0], _read(row[1]))
        return self._chunks.get(seq)

    def ending(self, queries: Queries) -> JsonObject:
        """How the exchange ended by that converter, as `Ending.to_json` has it."""
        row: Any = queries.execute(
            "SELECT ending FROM translation WHERE exchange = ? AND converter = ? AND ending IS NOT NULL", (self.exchange, self.converter)
        ).fetchone()
        return {} if row is None else kept_object(row[0])


def newest_of(queries: Queries, exchange: str) -> Translated | None:
    """None for an exchange that was translated once only, when it came."""
    found: Any = queries.execute("SELECT DISTINCT converter FROM translation WHERE exchange = ?", (exchange,)).fetchall()
    names = [str(row[0]) for row in found]
    return Translated(exchange, max(names, key=lambda name: converter_of(name).version)) if names else None


def laid_over(queries: Queries, conversation: int, events: Sequence[Event]) -> list[Event]:
    """The events with the chunks that the newest translations give them."""
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
        return {}  # what the log says is still there
    found: dict[int, tuple[Chunk, ...]] = {}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int) and isinstance(entry[1], list):
            found[entry[0]] = tuple([chunk for chunk in entry[1] if isinstance(chunk, dict)])
    return found


def written(changed: Sequence[tuple[int, tuple[Chunk, ...]]]) -> bytes:
    """A stretch as it is stored."""
    return dumps([(seq, chunks) for seq, chunks in changed])
