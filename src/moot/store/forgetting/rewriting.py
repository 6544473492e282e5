"""Rewriting a conversation whose log is redacted: tombstones replace events, and everything derived from the log is rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moot.convert.fold import Folder
from moot.store import segments
from moot.store.connect import Queries
from moot.store.events import Events
from moot.store.forgetting.needles import Needles
from moot.store.rows import EXCHANGE, auxiliary_exchanges, exchange_of, kept_object
from moot.store.stored import Row, former, tombstone
from moot.store.transaction import Transaction
from moot.store.unindexing import unindex
from moot.store.verify.rows import log_rows
from moot.types.canonical import JsonObject, dumps
from moot.types.exchange import row_digest

__all__ = ["Rewriting"]

_PAGE = 2048
REDACTED = "redacted"
"""Field of an exchange's request that marks the exchange as redacted."""


class Rewriting:
    """The rewriting of one conversation, inside the changing transaction."""

    def __init__(self, transaction: Transaction, no: int, needles: Needles) -> None:
        self._transaction = transaction
        self._no = no
        self._needles = needles
        self._counts: dict[str, int] = {}

    def work(self, found: Mapping[int, Row]) -> dict[str, int]:
        """Apply the changes and return the number of changed rows by table."""
        now = self._transaction.now_ms
        rows = {seq: _dated(row, now) for seq, row in found.items()}
        runs: dict[int, str] = dict(self._transaction.execute("SELECT no, id FROM run WHERE conversation = ?", (self._no,)).fetchall())
        touched = {row.exchange_id(runs.get(row.run or 0)) for row in rows.values()} - {None}
        rows |= self._exchanges({str(id) for id in touched}, rows, runs, now)
        segments.rewrite(self._transaction, self._no, rows)
        self._count("event", len(rows))
        self._messages({runs[row.run] for row in rows.values() if row.run in runs})
        self._count("search", self._indexed())
        return self._counts

    def _indexed(self) -> int:
        """Unindex messages whose indexed text has a match, and return their number."""
        found: Any = self._transaction.execute(
            "SELECT m.id, t.text, t.tools, t.reasoning, t.agent, t.model, t.facts FROM search AS s JOIN search_text AS t ON t.no = s.no"
            " JOIN message AS m ON m.no = s.message WHERE s.conversation = ?",
            (self._no,),
        ).fetchall()
        return sum(unindex(self._transaction, id) for id, *texts in found if any(self._needles.text(text) != text for text in texts))

    def _count(self, table: str, rows: int) -> None:
        if rows:
            self._counts[table] = self._counts.get(table, 0) + rows

    def _exchanges(self, touched: set[str], rows: Mapping[int, Row], runs: Mapping[int, str], now: int) -> dict[int, Row]:
        """Mark redacted exchanges, and return their start events, which contain a digest of the row."""
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
            deleted = self._transaction.execute("DELETE FROM translation WHERE exchange = ?", (old.id,)).rowcount
            self._count("translation", deleted)
            self._count("exchange", 1)
            digests[old.id] = row_digest(new)
        return self._starts(digests, rows, runs, now) if digests else {}

    def _starts(self, digests: Mapping[str, str], rows: Mapping[int, Row], runs: Mapping[int, str], now: int) -> dict[int, Row]:
        found: dict[int, Row] = {}
        for stored in log_rows(self._transaction, self._no, 0):
            row = rows.get(stored.seq, stored)
            was = former(row)
            id = row.exchange_id(runs.get(row.run or 0))
            if was.kind == "exchange" and was.phase == "start" and id is not None and id in digests:
                body: JsonObject = kept_object(was.body) if was.body is not None else {}
                if "row" in body:
                    found[row.seq] = tombstone(row, row.chunks, dumps({**body, "row": digests[id]}), now)
        return found

    def _messages(self, runs: set[str]) -> None:
        """Update messages: those of runs are folded again, others are redacted directly, like their events."""
        transaction, needles = self._transaction, self._needles
        stored = transaction.execute(
            "SELECT id, run, parts, metadata, client_id FROM message WHERE conversation = ?", (self._no,)
        ).fetchall()
        for id, run, parts, metadata, client_id in stored:
            if run is None:
                now = needles.json(parts, structured=True), needles.json(metadata)
            elif run in runs or needles.within(parts) or needles.within(metadata):
                now = _folded(transaction, self._no, run)
            else:
                continue
            kept_id = client_id if client_id is None or needles.text(client_id) == client_id else None
            if (*now, kept_id) != (parts, metadata, client_id):
                transaction.execute("UPDATE message SET parts = ?, metadata = ?, client_id = ? WHERE id = ?", (*now, kept_id, id))
                self._count("message", 1)
                if unindex(transaction, id):
                    self._count("search", 1)


def _folded(queries: Queries, no: int, run: str) -> tuple[bytes, bytes]:
    """Fold an ended run's log and return parts and metadata of its message."""
    others = auxiliary_exchanges(queries, run)
    folder, after, events = Folder(), 0, Events()
    while page := events.page(queries, no, after, _PAGE, run, newest=True):
        after = page[-1].seq
        for event in page:
            if event.exchange not in others:
                folder.feed_all(event.chunks)
    return dumps(folder.parts()), dumps(folder.metadata())


def _dated(row: Row, now: int) -> Row:
    was = former(row)
    return tombstone(row, was.chunks, was.body, now)
