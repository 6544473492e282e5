"""Redacting the log of a conversation: finding the events with a match, and rebuilding the rows derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from moot.convert.fold import Folder
from moot.store.database.transaction import Transaction
from moot.store.log import segments
from moot.store.log.events import Events
from moot.store.log.rows import Row, before_redaction, tombstone
from moot.store.log.segments import log_rows
from moot.store.maintenance.purge.redactor import Redactor
from moot.store.rows import EXCHANGE, exchange_of, parse_stored, parse_stored_object, plain_or_damaged
from moot.store.search.indexer import unindex
from moot.types.canonical import JsonObject, dumps, loads
from moot.types.chunk import Chunk
from moot.types.exchange import row_digest
from moot.types.maintenance import REDACTION_MARK
from moot.types.tree import Compaction

_DELTAS = {"text-delta": ("id", "delta"), "reasoning-delta": ("id", "delta"), "tool-input-delta": ("toolCallId", "inputTextDelta")}
"""Delta chunks, with the field that identifies the text and the field with the delta."""
_APART = ("index", "output_index", "content_index", "item_id", "itemId", "toolCallId")
"""Fields that distinguish concurrent items in the frames of a stream."""


@dataclass(slots=True)
class _Stream:
    """One joined text, with the events and chunks of its pieces."""

    pieces: list[str] = field(default_factory=list[str])
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """For each piece, the seq of its event and the index of its chunk. The index -1 means that it is from the raw data."""


class Scan:
    """A scan of a conversation: feed it all rows in order, then let it build the tombstones."""

    def __init__(self, needles: Redactor) -> None:
        self.hits: set[int] = set()
        """Seqs of events with a match."""
        self._needles = needles
        self._deltas: dict[tuple[int, int], str] = {}
        """Redacted texts of delta chunks, by the seq of the event and the index of the chunk."""
        self._streams: dict[Hashable, dict[Hashable, _Stream]] = {}
        """Joined texts by exchange (or run), then by text id."""
        self._raws: dict[Hashable, list[tuple[int, bytes]]] = {}
        self._summaries: set[int] = set()
        """Seqs of events that contain a summary of messages."""

    def row(self, row: Row) -> None:
        """Search the next event."""
        needles, was = self._needles, before_redaction(row)
        fields = [data for data in (row.raw, was.chunks, was.body) if data]
        if needles.within(b"\0".join(fields)) and any(needles.within(data) for data in fields):  # usually one check is sufficient
            self.hits.add(row.seq)
        of = row.run, row.exchange
        if row.raw is not None:
            self._raws.setdefault(of, []).append((row.seq, row.raw))
            for name, text in _leaves(row.raw):
                self._add(of, name, text, row.seq, -1)
        if row.chunks != b"[]":
            for index, (kind, id, text) in _deltas(was.chunks):
                self._add(of, (kind, id), text, row.seq, index)
        if was.kind == "exchange" and was.phase == "end":
            self._close(of)
        elif was.kind == "tree" and (compaction := Compaction.of_body(_object(was.body))) is not None and compaction.summary:
            self._summaries.add(row.seq)

    def end(self) -> None:
        """Search the texts that are still incomplete after the last event."""
        for of in {*self._streams, *self._raws}:
            self._close(of)
        if self.hits:  # a later summary may repeat a match in other words
            self.hits.update(seq for seq in self._summaries if seq > min(self.hits))

    def changed(self, row: Row, at: int) -> Row:
        """Return the tombstone for an event with a match."""
        was = before_redaction(row)
        body = was.body
        if row.seq in self._summaries:
            body = dumps(Compaction(str(_object(body).get("through")), "").to_body())
        elif body is not None and self._needles.within(body):
            body = self._body(was.kind, body)
        left: list[JsonObject] = []
        for index, chunk in enumerate(_list(was.chunks)):
            text = self._deltas.get((was.seq, index))
            if text is not None:
                chunk = {**chunk, _DELTAS[str(chunk["type"])][1]: text}
            left.append(self._needles.piece(chunk))
        return tombstone(row, dumps(left), body, at)

    def _add(self, of: Hashable, name: Hashable, text: str, seq: int, index: int) -> None:
        stream = self._streams.setdefault(of, {}).setdefault(name, _Stream())
        stream.pieces.append(text)
        stream.places.append((seq, index))

    def _close(self, of: Hashable) -> None:
        for stream in self._streams.pop(of, {}).values():
            self._look(stream)
        raws = self._raws.pop(of, [])
        if len(raws) > 1:
            text = b"".join(data for _, data in raws).decode("utf-8", "surrogateescape")
            spans = [
                (len(text[:start].encode("utf-8", "surrogateescape")), len(text[:end].encode("utf-8", "surrogateescape")))
                for start, end in self._needles.spans(text)
            ]
            position = 0
            for seq, data in raws if spans else ():
                if any(start < position + len(data) and end > position for start, end in spans):
                    self.hits.add(seq)
                position += len(data)

    def _look(self, stream: _Stream) -> None:
        spans = self._needles.spans("".join(stream.pieces)) if len(stream.pieces) > 1 else []
        if not spans:
            return
        start = 0
        for text, (seq, index) in zip(stream.pieces, stream.places, strict=True):
            pieces: list[str] = []
            at, end = start, start + len(text)
            for first, stop in spans:
                if stop <= start or first >= end:
                    continue
                pieces.append(text[at - start : max(first, start) - start])
                if first >= start:
                    pieces.append(REDACTION_MARK)
                at = min(stop, end)
            left = "".join([*pieces, text[at - start :]])
            if left != text:
                self.hits.add(seq)
                if index >= 0:
                    self._deltas[seq, index] = left
            start += len(text)

    def _body(self, kind: str, body: bytes) -> bytes:
        try:
            value = parse_stored(body)
        except ValueError:
            return b"null"
        if kind != "message" or not isinstance(value, dict):
            return dumps(self._needles.value(value))
        redacted = self._needles.piece(value)
        parts = value.get("parts")
        if isinstance(parts, list):
            redacted["parts"] = [self._needles.piece(part) if isinstance(part, dict) else self._needles.value(part) for part in parts]
        return dumps(redacted)


def _list(chunks: bytes) -> list[Chunk]:
    try:
        value = parse_stored(chunks)
    except ValueError:
        return []
    return [chunk for chunk in value if isinstance(chunk, dict)] if isinstance(value, list) else []


def _object(body: bytes | None) -> JsonObject:
    try:
        return {} if body is None else parse_stored_object(body)
    except ValueError:
        return {}


def _deltas(chunks: bytes) -> Iterator[tuple[int, tuple[str, str, str]]]:
    for index, chunk in enumerate(_list(chunks)):
        kind = str(chunk.get("type"))
        if kind in _DELTAS:
            id, text = _DELTAS[kind]
            yield index, (kind, str(chunk.get(id)), str(chunk.get(text, "")))


def _leaves(raw: bytes) -> Iterator[tuple[Hashable, str]]:
    for line in raw.splitlines():
        data = line[5:].strip() if line.startswith(b"data:") else line.strip()
        if data[:1] in (b"{", b"["):
            try:
                value = loads(data)
            except ValueError:
                continue
            yield from _strings(value, ())


def _strings(value: Any, place: tuple[Hashable, ...]) -> Iterator[tuple[Hashable, str]]:
    if isinstance(value, str):
        if value:
            yield place, value
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        apart = tuple(str(fields[name]) for name in _APART if name in fields and not isinstance(fields[name], dict | list))
        for name, each in fields.items():
            if name not in _APART:
                yield from _strings(each, (*place, *apart, name))
    elif isinstance(value, list):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _strings(each, (*place, index))


REDACTED = "redacted"
"""Field of an exchange's request that marks the exchange as redacted."""


class Rewriting:
    """The rewriting of one conversation inside a transaction."""

    def __init__(self, transaction: Transaction, no: int, needles: Redactor) -> None:
        self._transaction = transaction
        self._no = no
        self._needles = needles
        self._counts = Counter[str]()

    def work(self, found: Mapping[int, Row]) -> dict[str, int]:
        """Apply the changes and return the number of changed rows by table."""
        now = self._transaction.now_ms
        rows = {seq: tombstone(row, (was := before_redaction(row)).chunks, was.body, now) for seq, row in found.items()}
        runs: dict[int, str] = dict(self._transaction.execute("SELECT no, id FROM run WHERE conversation = ?", (self._no,)).fetchall())
        touched = {row.exchange_id(runs.get(row.run or 0)) for row in rows.values()} - {None}
        rows |= self._exchanges({str(id) for id in touched}, rows, runs, now)
        segments.rewrite(self._transaction, self._no, rows)
        if found:
            dropped = self._transaction.execute("DELETE FROM compaction WHERE conversation = ? AND seq >= ?", (self._no, min(found)))
            self._counts["compaction"] += dropped.rowcount
        self._counts["event"] += len(rows)
        self._messages({runs[row.run] for row in rows.values() if row.run in runs})
        self._counts["search"] += self._indexed()
        return self._counts

    def _indexed(self) -> int:
        """Remove all messages from the index, because a match may span what was indexed together, and return how many there were."""
        sql = "SELECT m.id FROM search AS s JOIN message AS m ON m.no = s.message WHERE s.conversation = ?"
        return sum(unindex(self._transaction, id) for (id,) in self._transaction.execute(sql, (self._no,)).fetchall())

    def _exchanges(self, touched: set[str], rows: Mapping[int, Row], runs: Mapping[int, str], now: int) -> dict[int, Row]:
        """Redact exchanges and mark them. Return the new rows of their start events (which contain a digest of the exchange) by seq."""
        digests: dict[str, str] = {}
        found: Any = self._transaction.execute(f"SELECT {EXCHANGE} WHERE e.conversation = ?", (self._no,)).fetchall()
        for row in found:
            old = exchange_of(row)
            changed = [self._needles.json(row[8]), self._needles.json(row[9]), *(self._needles.text(text) for text in row[6:8])]
            if old.id not in touched and changed == [row[8], row[9], row[6], row[7]]:
                continue
            new = exchange_of((*row[:6], changed[2], changed[3], changed[0], changed[1], *row[10:]))
            new = replace(new, request={**new.request, REDACTED: True})
            self._transaction.execute(
                "UPDATE exchange SET options = ?, request = ?, provider = ?, model = ? WHERE id = ?",
                (changed[0], dumps(new.request), new.provider, new.model, old.id),
            )
            self._counts["translation"] += self._transaction.execute("DELETE FROM translation WHERE exchange = ?", (old.id,)).rowcount
            self._counts["exchange"] += 1
            digests[old.id] = row_digest(new)
        return self._starts(digests, rows, runs, now) if digests else {}

    def _starts(self, digests: Mapping[str, str], rows: Mapping[int, Row], runs: Mapping[int, str], now: int) -> dict[int, Row]:
        found: dict[int, Row] = {}
        for stored in log_rows(self._transaction, self._no, 0):
            row = rows.get(stored.seq, stored)
            was = before_redaction(row)
            id = row.exchange_id(runs.get(row.run or 0))
            if was.kind == "exchange" and was.phase == "start" and id is not None and id in digests:
                body: JsonObject = parse_stored_object(was.body) if was.body is not None else {}
                if "row" in body:
                    found[row.seq] = tombstone(row, row.chunks, dumps({**body, "row": digests[id]}), now)
        return found

    def _messages(self, runs: set[str]) -> None:
        """Update messages: messages written by runs are folded again, others are redacted directly, as their events are."""
        transaction, needles = self._transaction, self._needles
        stored = transaction.execute(
            "SELECT id, run, parts, metadata, client_id FROM message WHERE conversation = ?", (self._no,)
        ).fetchall()
        for id, run, data, metadata, client_id in stored:
            parts = plain_or_damaged(data)
            if run is None:
                now = needles.json(parts, structured=True), needles.json(metadata)
            elif run in runs or needles.within(parts) or needles.within(metadata):
                folder = Folder()
                Events().fold(transaction, self._no, run, folder, newest=True)
                now = dumps(folder.parts()), dumps(folder.metadata())
            else:
                continue
            kept_id = client_id if client_id is None or needles.text(client_id) == client_id else None
            if (*now, kept_id) != (parts, metadata, client_id):
                transaction.execute("UPDATE message SET parts = ?, metadata = ?, client_id = ? WHERE id = ?", (*now, kept_id, id))
                self._counts["message"] += 1
                self._counts["search"] += unindex(transaction, id)
