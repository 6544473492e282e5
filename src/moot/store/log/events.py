"""Reading ranges of the log with their newest translations, and folding the messages of live runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from moot.convert.fold import Folder
from moot.convert.imports import apply_growth, is_growth
from moot.errors import NotFound
from moot.store.database.connection import Queries
from moot.store.database.transaction import SEQ_BITS, checksum
from moot.store.log import segments
from moot.store.rows import DAMAGED, EVENT, auxiliary_exchanges, event_of, parse_stored, parse_stored_object, parts_of
from moot.types.canonical import JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import converter_of
from moot.types.message import Message


@dataclass(slots=True)
class StoredTranslation:
    """A reader of the newest translation of one exchange, in batches."""

    exchange: str
    converter: str
    _last: int = 0
    """Last seq of the current batch."""
    _chunks: dict[int, tuple[Chunk, ...]] | None = None

    def chunks(self, queries: Queries, seq: int) -> tuple[Chunk, ...] | None:
        """Return an event's chunks in this translation, or None if they equal those in the log. Events must be passed in log order."""
        if self._chunks is None or seq > self._last:
            row: Any = queries.execute(
                "SELECT last_seq, chunks FROM translation WHERE exchange = ? AND converter = ? AND last_seq >= ?"
                " ORDER BY first_seq LIMIT 1",
                (self.exchange, self.converter, seq),
            ).fetchone()
            self._last, self._chunks = (1 << 32, {}) if row is None else (row[0], _read(row[1]))
        return self._chunks.get(seq)

    def ending(self, queries: Queries) -> JsonObject:
        """Return the exchange's ending in this translation, in the form of `Ending.to_json`."""
        row: Any = queries.execute(
            "SELECT ending FROM translation WHERE exchange = ? AND converter = ? AND ending IS NOT NULL", (self.exchange, self.converter)
        ).fetchone()
        return {} if row is None else parse_stored_object(row[0])


def newest_of(queries: Queries, exchange: str) -> StoredTranslation | None:
    """Return the newest translation of an exchange, or None if it was never translated again."""
    found: Any = queries.execute("SELECT DISTINCT converter FROM translation WHERE exchange = ?", (exchange,)).fetchall()
    names = [str(row[0]) for row in found]
    return StoredTranslation(exchange, max(names, key=lambda name: converter_of(name).version)) if names else None


def with_newest_chunks(queries: Queries, conversation: int, events: Sequence[Event]) -> list[Event]:
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
        value = parse_stored(data)
    except ValueError:
        return {}  # damaged: use the chunks in the log
    found: dict[int, tuple[Chunk, ...]] = {}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int) and isinstance(entry[1], list):
            found[entry[0]] = tuple([chunk for chunk in entry[1] if isinstance(chunk, dict)])
    return found


def encode_chunks(changed: Sequence[tuple[int, tuple[Chunk, ...]]]) -> bytes:
    """Serialize a batch of a translation: pairs of an event's seq and its chunks."""
    return dumps([(seq, chunks) for seq, chunks in changed])


_PAGE = 2048
_DAMAGED = "meta"


class Events:
    """A reader of events in segments and rows. It caches run ids by number, and the most recently unpacked frames."""

    def __init__(self) -> None:
        self._runs: dict[int, str] = {}
        self._frames = segments.FrameCache()

    def page(
        self, queries: Queries, conversation: int, after: int, limit: int, run: str | None = None, *, newest: bool = False
    ) -> list[Event]:
        """Return at most `limit` events after the seq `after`, in order. A damaged event becomes a `meta` event.

        If `run` is set, return only events of that run. If `newest` is set, chunks come from the newest translation.
        """
        through, number = 0xFFFFFFFF, None
        if run is not None:
            row = queries.execute(
                "SELECT no, first_seq, last_seq, status FROM run WHERE id = ? AND conversation = ?", (run, conversation)
            ).fetchone()
            if row is None:
                raise NotFound(f"No run in this conversation has the id {run!r}.")
            number, after = row[0], max(after, row[1] - 1)
            if row[3] in ("finished", "failed", "cancelled"):
                through = row[2]
        rows = self._rows(queries, conversation, after, through, limit, number)
        events = [self._event(queries, row) for row in rows]
        return with_newest_chunks(queries, conversation, events) if newest else events

    def all(self, queries: Queries, conversation: int, run: str | None, after: int = 0, *, newest: bool = False) -> Iterator[Event]:
        """Yield all events after `after`, like `page`. Consume it within one snapshot."""
        while page := self.page(queries, conversation, after, _PAGE, run, newest=newest):
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].seq

    def fold(self, queries: Queries, conversation: int, run: str, folder: Folder, after: int = 0, *, newest: bool = False) -> int:
        """Feed `folder` the run's events after the seq `after`, except those of auxiliary calls. Return the seq of the last event read."""
        others = auxiliary_exchanges(queries, run)
        for event in self.all(queries, conversation, run, after, newest=newest):
            after = event.seq
            if event.exchange not in others:
                folder.feed_all(event.chunks)
        return after

    def folded(self, queries: Queries, message: Message, conversation: int) -> Message:
        """Return the message, updated with the events since its last fold. Damaged parts are rebuilt from the log."""
        if rebuilt := message.parts == (DAMAGED,):
            message = self._rebuilt(queries, message, conversation)
        if message.run is None or (message.status not in ("streaming", "interrupted") and message.folded_through >= message.last_seq):
            return message
        folder = Folder(message.parts, message.metadata)
        last = self.fold(queries, conversation, message.run, folder, message.folded_through, newest=rebuilt)
        return replace(message, parts=folder.parts(), metadata=folder.metadata(), folded_through=last, last_seq=max(message.last_seq, last))

    def _rebuilt(self, queries: Queries, message: Message, conversation: int) -> Message:
        if message.run is not None:
            return replace(message, parts=(), folded_through=message.first_seq - 1)
        parts, metadata = message.parts, message.metadata
        for event in self.all(queries, conversation, None, message.first_seq - 1):
            body = event.body
            if event.seq > message.last_seq:
                break
            if event.kind != "message" or not isinstance(body, dict) or body.get("id") != message.id:
                continue
            if is_growth(body):
                parts, metadata = apply_growth(parts, metadata, body)
            else:
                stored = body.get("metadata")
                parts, metadata = parts_of(body.get("parts")), stored if isinstance(stored, dict) else message.metadata
        return replace(message, parts=parts, metadata=metadata)

    def _rows(self, queries: Queries, conversation: int, after: int, through: int, limit: int, run: int | None) -> list[tuple[Any, ...]]:
        base = conversation << SEQ_BITS
        found: list[tuple[Any, ...]] = []
        head = queries.execute("SELECT sealed_through FROM log_head WHERE conversation = ?", (conversation,)).fetchone()
        if head is not None and head[0] > after:
            sealed = segments.rows(queries, conversation, after, min(through, head[0]), self._frames)  # unpacks only the frames needed
            found = list(islice(sealed if run is None else (row for row in sealed if row[2] == run), limit))
            after = head[0]
        if len(found) < limit:
            of_run = "" if run is None else " AND run = ?"
            values = (base + after, base + through) if run is None else (base + after, base + through, run)
            found += queries.execute(
                f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ?{of_run} ORDER BY id LIMIT ?", (*values, limit - len(found))
            ).fetchall()
        return found

    def _event(self, queries: Queries, row: tuple[Any, ...]) -> Event:
        id, at, run_no, _, kind, chunks, raw, phase, key, body, check = row
        run = None
        if run_no is not None and (run := self._runs.get(run_no)) is None:
            run = self._runs[run_no] = self._run_id(queries, run_no)
        # the checksum is None for a sealed row that was verified when its frame was written
        if check is not None and checksum(id & 0xFFFFFFFF, kind, chunks, raw, phase, key, body) != check:
            return Event(_DAMAGED, (), raw, run, None, None, None, {"damaged": True, "kind": kind}, at, id & 0xFFFFFFFF)
        return event_of(row, run)

    def _run_id(self, queries: Queries, no: int) -> str:
        if len(self._runs) > 10_000:
            self._runs.clear()
        row = queries.execute("SELECT id FROM run WHERE no = ?", (no,)).fetchone()
        return f"run {no}" if row is None else row[0]
