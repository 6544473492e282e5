"""Checking one conversation: a single pass over its log, in batches of one snapshot each."""

from __future__ import annotations

import re
import time
from typing import Any, LiteralString

from moot.convert.imports import is_growth
from moot.store.database.connection import Queries, sqlite
from moot.store.log.rows import Row, before_redaction
from moot.store.log.segments import log_rows, read_chunks, read_object
from moot.store.maintenance.verify.records import CompactionJudge, ExchangeJudge, Findings, GrowthJudge, RunJudge, exchange_row
from moot.store.rows import auxiliary_exchanges
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.exchange import Exchange, row_digest
from moot.types.run import TERMINAL
from moot.types.verify import Receipt, Translators

_STRETCH = 0.1  # seconds per snapshot, which is how long another reader may have to wait
_LOOK = 64  # rows between two checks of the clock
_NAMED = 500  # blobs looked up in one statement
_BLOB = re.compile(rb"blob:([0-9a-f]{64})")

_COUNTED: dict[str, LiteralString] = {
    "message": "SELECT count(*) FROM message WHERE conversation = ?",
    "exchange": "SELECT count(*) FROM exchange WHERE conversation = ?",
}


class ConversationJudge:
    """The check of a conversation in one pass over its log. Each method runs within one snapshot, on the store's reader thread."""

    def __init__(self, no: int, id: str, receipt: Receipt, translators: Translators) -> None:
        self._no = no
        self._receipt = receipt
        self._findings = Findings(receipt, id)
        self._translators = translators
        self._last = 0
        self._runs: dict[int, RunJudge] = {}
        """Runs that have started and not ended."""
        self._ended: set[int] = set()
        self._exchanges: dict[str, ExchangeJudge] = {}
        """Exchanges that have started and not ended."""
        self._growing = GrowthJudge(no, self._findings)
        self._compactions = CompactionJudge(no, self._findings)
        self._counted = dict.fromkeys(_COUNTED, 0)
        """Number of rows according to the log, by table."""
        self._lost = 0
        """First event of the current series of lost events in a damaged frame; 0 = the last event was readable."""
        self._blind: set[int] = set()
        """Runs with lost events, which can't be checked."""
        self.blobs: set[str] = set()
        """Referenced blobs that exist."""
        receipt.conversations += 1

    def stretch(self, queries: Queries) -> bool:
        """Check the next batch; return True at the end of the conversation."""
        until = time.monotonic() + _STRETCH
        try:
            for count, row in enumerate(log_rows(queries, self._no, self._last), 1):
                self._row(queries, row)
                if not count % _LOOK and time.monotonic() > until:
                    return False
            self._finish(queries)
        except sqlite.DatabaseError as error:
            self._findings.add("file", f"the log after event {self._last}", "readable pages", str(error), self._last + 1)
        return True

    def _row(self, queries: Queries, row: Row) -> None:
        seq, receipt = row.seq, self._receipt
        if seq != self._last + 1:
            self._missing(self._last + 1, seq - 1)
        self._last = seq
        if not row.check:
            self._lost = self._lost or seq
            return
        self._pass_by(queries, seq - 1)
        receipt.events += 1
        if not row.is_sound():
            self._findings.add("changed", f"event {seq}", "bytes that match the checksum", f"other bytes, in a {row.kind!r} event", seq)
        row = self._left_of(row)
        run = self._run(queries, row)
        exchange = self._exchange(queries, row, run)
        chunks = self._made(queries, row, exchange)
        receipt.chunks += len(chunks)
        if run is not None and (exchange is None or exchange.exchange.purpose == "answer"):
            run.feed(chunks)
        if row.kind != "raw" and row.body is not None:
            self._body(queries, row, run, exchange)

    def _pass_by(self, queries: Queries, last: int) -> None:
        """Report lost events up to `last`, if any, and stop checking the runs to which the events belong."""
        if not self._lost:
            return
        where = f"event {last}" if last == self._lost else f"events {self._lost} to {last}"
        self._findings.add("changed", where, "frames of a segment that match their checksums", "other bytes", self._lost)
        found: Any = queries.execute(
            "SELECT no, id FROM run WHERE conversation = ? AND first_seq <= ? AND last_seq >= ?", (self._no, last, self._lost)
        ).fetchall()
        for no, id in (*found, (0, "")):
            self._blind.add(no)
            self._runs.pop(no, None)
            for exchange in [name for name, judge in self._exchanges.items() if judge.exchange.run == id]:
                del self._exchanges[exchange]
        self._lost = 0

    def _left_of(self, row: Row) -> Row:
        if row.kind != "tombstone":
            return row
        self._receipt.redacted += 1
        return before_redaction(row)

    def _made(self, queries: Queries, row: Row, exchange: ExchangeJudge | None) -> tuple[Chunk, ...]:
        if row.raw:
            self._receipt.raw_events += 1
            self._receipt.raw_bytes += len(row.raw)
        if exchange is not None:
            made = exchange.raw(queries, row) if row.kind == "raw" else exchange.shown(queries, row)
            if made is not None:
                return made
        return self._findings.parsed(lambda: read_chunks(row.chunks), f"event {row.seq}", "chunks as a JSON array", row.seq) or ()

    def _body(self, queries: Queries, row: Row, run: RunJudge | None, exchange: ExchangeJudge | None) -> None:
        body = self._findings.parsed(lambda: read_object(row.body), f"event {row.seq}", "a body in JSON", row.seq)
        if body is None:
            return
        self.blobs.update(found.decode() for found in _BLOB.findall(row.body or b""))
        if run is not None:
            run.note(row, body)
        if row.kind == "exchange" and row.phase == "end" and exchange is not None:
            exchange.end(queries, row, body)
            del self._exchanges[exchange.exchange.id]
        elif row.kind == "message" and is_growth(body):
            self._growing.extend(queries, row, body)
        elif row.kind == "message":
            self._message(queries, row, body)
        elif row.kind == "tree" and body.get("op") == "answer":
            self._answer(queries, row, body)
        elif row.kind == "tree":
            self._compactions.note(row, body)
        elif row.key == "run" and row.phase == "end" and run is not None:
            run.end(queries, row, body)
            del self._runs[run.no]
            self._ended.add(run.no)
            for id in [id for id, judge in self._exchanges.items() if judge.exchange.run == run.id]:
                del self._exchanges[id]  # abandoned because of a crash or a new prompt

    def _run(self, queries: Queries, row: Row) -> RunJudge | None:
        if row.run is None or row.run in self._blind:
            return None
        judge = self._runs.get(row.run)
        if judge is None:
            judge = None if row.run in self._ended else RunJudge.of(queries, row.run, self._no, self._findings)
            if judge is None:
                words = "none, because it had ended" if row.run in self._ended else f"run number {row.run} of another conversation"
                self._findings.add("record", f"event {row.seq}", "an unfinished run of this conversation", words, row.seq)
                return None
            self._receipt.runs += 1
            self._runs[row.run] = judge
        return judge

    def _exchange(self, queries: Queries, row: Row, run: RunJudge | None) -> ExchangeJudge | None:
        id = row.exchange_id(run.id if run is not None else None)
        if (row.run or 0) in self._blind:
            return None
        if id is None:
            if row.kind == "raw":
                self._findings.add("record", f"event {row.seq}", "an exchange", "raw bytes without one", row.seq)
            return None
        if row.kind == "exchange" and row.phase == "start":
            self._begin(queries, row, id, run)
        judge = self._exchanges.get(id)
        if judge is None and row.kind in ("raw", "exchange"):
            self._findings.add("record", f"event {row.seq}", f"a preceding start of exchange {id}", "no open exchange", row.seq)
        return judge

    def _begin(self, queries: Queries, row: Row, id: str, run: RunJudge | None) -> None:
        owner = run.id if run is not None else ""
        try:
            exchange = exchange_row(queries, id)
        except ValueError as error:
            self._findings.add("unreadable", f"exchange {id}", "options and request in JSON", str(error), row.seq)
            return
        if exchange is None or exchange.run != owner:
            found = "no row" if exchange is None else f"run {exchange.run!r}"
            self._findings.add("record", f"exchange {id}", f"a row of run {owner!r}, because event {row.seq} starts it", found, row.seq)
            return
        self._counted["exchange"] += 1
        self._same(row, exchange)
        self._exchanges[id] = ExchangeJudge(queries, exchange, self._findings, self._translators)
        self._request(queries, row, id, exchange.request)

    def _same(self, row: Row, exchange: Exchange) -> None:
        """Check that the exchange's row is unchanged since its start; events of old versions have no digest."""
        try:
            digest = read_object(row.body).get("row")
        except ValueError:
            return  # reported when the body is read
        if digest is not None and digest != row_digest(exchange):
            expected = f"options, request and converter with digest {digest}, according to event {row.seq}"
            self._findings.add("record", f"exchange {exchange.id}", expected, f"digest {row_digest(exchange)}", row.seq)

    def _request(self, queries: Queries, row: Row, exchange: str, manifest: JsonObject) -> None:
        pieces = manifest.get("pieces")
        names = [str(piece) for piece in pieces] if isinstance(pieces, list) else []
        wanted = [name for name in dict.fromkeys(names) if name not in self.blobs]
        for begin in range(0, len(wanted), _NAMED):
            some = wanted[begin : begin + _NAMED]
            found: Any = queries.execute(f"SELECT sha256 FROM blob WHERE sha256 IN ({', '.join('?' * len(some))})", some)
            self.blobs.update(name for (name,) in found)
        missing = [name for name in wanted if name not in self.blobs]
        if names and not missing:
            self._receipt.requests += 1
        elif missing or pieces is not None:
            words = f"{len(missing)} missing, such as {missing[0]}" if missing else f"{pieces!r}"
            self._findings.add("missing", f"the request of exchange {exchange}", "all its pieces", words, row.seq)

    def _message(self, queries: Queries, row: Row, body: JsonObject) -> None:
        id = str(body.get("id"))
        if (stored := self._stored(queries, row, id, "contains")) is None:
            return
        expected = (body.get("role"), body.get("parent"), None, body.get("status", "finished"), row.seq)
        self._compare(id, row, expected, (stored[1], stored[5], stored[6], stored[7], stored[9]))
        self._growing.begin(id, row, stored, body)

    def _answer(self, queries: Queries, row: Row, body: JsonObject) -> None:
        id = str(body.get("message"))
        if (stored := self._stored(queries, row, id, "refers to")) is not None:
            self._compare(id, row, ("assistant", body.get("parent"), body.get("run")), (stored[1], stored[5], stored[6]))

    def _stored(self, queries: Queries, row: Row, id: str, verb: str) -> Any:
        stored = self._findings.message(queries, id, f"a row, because event {row.seq} {verb} it", row.seq)
        if stored is not None:
            self._counted["message"] += 1
            self._receipt.messages += 1
            self.blobs.update(found.decode() for found in _BLOB.findall(stored[2]))
        return stored

    def _compare(self, id: str, row: Row, expected: tuple[Json, ...], found: tuple[Json, ...]) -> None:
        if expected != found:
            self._findings.add("record", f"message {id}", f"{expected}, according to event {row.seq}", f"{found}", row.seq)

    def _finish(self, queries: Queries) -> None:
        self._pass_by(queries, self._last)
        head: Any = queries.execute("SELECT next_seq FROM log_head WHERE conversation = ?", (self._no,)).fetchone()
        if head is None:
            self._findings.add("missing", "the head of the log", f"next seq {self._last + 1}", "no row")
        elif head[0] - 1 > self._last:
            self._missing(self._last + 1, head[0] - 1)
        elif head[0] - 1 < self._last:
            self._findings.add("record", "the head of the log", f"next seq {self._last + 1}", f"{head[0]}")
        self._growing.finish()
        self._compactions.finish(queries, complete=not self._blind)
        for judge in list(self._runs.values()):
            self._live(queries, judge)
        for no, id, status in queries.execute("SELECT no, id, status FROM run WHERE conversation = ?", (self._no,)):
            if no in self._ended or no in self._runs or no in self._blind:
                continue
            self._receipt.runs += 1
            if status in TERMINAL:
                self._findings.add("missing", f"run {id}", "events in the log", f"none, although it is {status}", None, id)
            else:
                self._receipt.live += 1
        for table, counted in self._counted.items():
            (stored,) = queries.execute(_COUNTED[table], (self._no,)).fetchone()
            if stored != counted and not self._blind:
                self._findings.add("record", f"the {table}s", f"{counted}, according to the log", f"{stored} rows")

    def _live(self, queries: Queries, judge: RunJudge) -> None:
        """Fold an unfinished run again up to where its stored message is folded."""
        message = judge.live(queries)
        if message is None:
            return
        self._receipt.live += 1
        fresh = RunJudge(judge.id, judge.no, judge.message, self._findings)
        others = auxiliary_exchanges(queries, judge.id)
        for row in log_rows(queries, self._no, message[9] - 1, message[11]):
            if row.run == judge.no and row.exchange_id(judge.id) not in others:
                try:
                    fresh.feed(read_chunks(row.chunks))
                except ValueError:
                    continue  # already reported
        fresh.compare(message, message[11])

    def _missing(self, first: int, last: int) -> None:
        where = f"event {first}" if first == last else f"events {first} to {last}"
        self._findings.add("missing", where, "seqs from 1 without gaps", "no row", first)
