"""Checking one exchange, run or growing message against the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from moot.convert.comparison import Difference, first_difference
from moot.convert.exchanges import Retranslation, TranslatorFailed, totals
from moot.convert.fold import Folder
from moot.convert.imports import apply_growth, is_growth
from moot.store.database.connection import Queries
from moot.store.log.events import newest_of
from moot.store.log.rows import Row
from moot.store.log.segments import log_rows, read_chunks, read_object
from moot.store.rows import EXCHANGE, MESSAGE, exchange_of, parse_stored, parse_stored_object, parts_of, plain
from moot.store.tree.compactions import compactions
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.exchange import FAILED_BY_MOOT, Ending, Exchange, converter_of
from moot.types.message import Part
from moot.types.run import TERMINAL
from moot.types.tree import Compaction
from moot.types.verify import Damage, DamageKind, Receipt, Translators

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Findings:
    """Collector of the damage found in one conversation. It is added to the receipt."""

    receipt: Receipt
    conversation: str = ""

    def add(self, kind: DamageKind, where: str, expected: str, found: str, seq: int | None = None, run: str | None = None) -> None:
        self.receipt.add(Damage(kind, where, expected, found, self.conversation, seq, run))

    def parsed(self, read: Callable[[], T], where: str, expected: str, seq: int) -> T | None:
        """Return the result of `read`. If it raises ValueError, report damage and return None."""
        try:
            return read()
        except ValueError as error:
            self.add("unreadable", where, expected, str(error), seq)
            return None

    def message(self, queries: Queries, id: str, expected: str, seq: int | None, run: str | None = None, *, missing: str = "none") -> Any:
        """Return a row of `MESSAGE`. If there is none, report damage and return None."""
        tables = "message AS m JOIN conversation AS c ON c.no = m.conversation"
        row = queries.execute(f"SELECT {MESSAGE} FROM {tables} WHERE m.id = ?", (id,)).fetchone()
        if row is None:
            self.add("missing", f"message {id}", expected, missing, seq, run)
        return row


_RUN = "id, no, message, status, usage, cost, result_seq, last_seq, conversation"


def compare_json(findings: Findings, where: str, expected: Json, stored: bytes, seq: int, run: str | None = None) -> None:
    """Report damage if the stored JSON differs."""
    try:
        stored = plain(stored)
        if dumps(expected) == stored:
            return
        found = first_difference(parse_stored(dumps(expected)), parse_stored(stored))
    except ValueError as error:
        findings.add("unreadable", where, "JSON", f"{error}", seq, run)
        return
    if found is not None:
        findings.add("message", where, f"{found.where}: {found.expected}", f"{found.where}: {found.found}", seq, run)


class RunJudge:
    """The check of a run, from its first event to its end."""

    def __init__(self, id: str, no: int, message: str, findings: Findings) -> None:
        self.id = id
        self.no = no
        self.message = message
        self._findings = findings
        self._folder = Folder()
        self._journal: list[Event] = []
        """Starts and ends of model calls, from which the sums are computed."""

    @staticmethod
    def of(queries: Queries, no: int, conversation: int, findings: Findings) -> RunJudge | None:
        """Return a checker for the run, or None if the conversation has no such run."""
        row: Any = queries.execute(f"SELECT {_RUN} FROM run WHERE no = ?", (no,)).fetchone()
        return None if row is None or row[8] != conversation else RunJudge(row[0], row[1], row[2], findings)

    def feed(self, chunks: tuple[Chunk, ...]) -> None:
        self._folder.feed_all(chunks)

    def note(self, row: Row, body: JsonObject) -> None:
        """Collect an event of the journal."""
        if row.key is not None and row.key.startswith("llm:") and row.phase in ("start", "end"):
            self._journal.append(Event(row.kind, phase=row.phase, key=row.key, body=body))  # type: ignore[arg-type]

    def end(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Compare the run's final state with its stored rows; `row` is its last event."""
        status = body.get("status")
        stored: Any = queries.execute(f"SELECT {_RUN} FROM run WHERE no = ?", (self.no,)).fetchone()
        usage, cost, _ = totals(self._journal)
        where = f"run {self.id}"
        sums: JsonObject = {"usage": usage.to_json(), "cost": cost}
        expected: JsonObject = {"status": status, **sums, "result_seq": row.seq, "last_seq": row.seq}
        try:
            found: JsonObject = {"status": stored[3], "usage": parse_stored(stored[4]), "cost": stored[5]}
        except ValueError as error:
            self._add("unreadable", where, "usage in JSON", str(error), row.seq)
            return
        found |= {"result_seq": stored[6], "last_seq": stored[7]}
        if (apart := first_difference(expected, found)) is not None:
            self._add("record", where, f"{apart.where}: {apart.expected}", f"{apart.where}: {apart.found}", row.seq)
        message = self._message(queries, row.seq)
        if message is None:
            return
        if (message[7], message[11]) != (status, row.seq):
            words = f"{status}, folded through {row.seq}"
            self._add("record", f"message {self.message}", words, f"{message[7]}, folded through {message[11]}", row.seq)
        self.compare(message, row.seq)

    def live(self, queries: Queries) -> Any:
        """Return the message row of an unfinished run. If the run has ended or has no message, report damage and return None."""
        row: Any = queries.execute("SELECT status FROM run WHERE no = ?", (self.no,)).fetchone()
        if row[0] in TERMINAL:
            self._add("missing", f"run {self.id}", "the event that ends it", f"none, although it is {row[0]}", None)
            return None
        return self._message(queries, None)

    def _message(self, queries: Queries, seq: int | None) -> Any:
        return self._findings.message(queries, self.message, "the run's message", seq, self.id, missing="no row")

    def compare(self, message: Any, seq: int) -> None:
        """Compare the fold so far with a message's row."""
        where = f"message {self.message}"
        compare_json(self._findings, f"{where}, its parts", list[Json](self._folder.parts()), message[2], seq, self.id)
        compare_json(self._findings, f"{where}, its metadata", self._folder.metadata(), message[3], seq, self.id)

    def _add(self, kind: DamageKind, where: str, expected: str, found: str, seq: int | None) -> None:
        self._findings.add(kind, where, expected, found, seq, self.id)


_Content: TypeAlias = tuple[tuple[Part, ...], JsonObject]
_FIRST, _LAST = 9, 10  # columns of a row of `MESSAGE`


class GrowthJudge:
    """The check of a conversation's messages, which later events may extend."""

    def __init__(self, no: int, findings: Findings) -> None:
        self._no = no
        self._findings = findings
        self._open: dict[str, _Content] = {}

    def begin(self, id: str, row: Row, stored: Any, body: JsonObject) -> None:
        """Compare a message with its row, unless later events extend it."""
        self._check(id, row, stored, _content(body))

    def extend(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Handle a later event of a message."""
        id = str(body.get("id"))
        stored = self._findings.message(queries, id, f"a row, because event {row.seq} extends it", row.seq)
        if stored is None:
            return
        before = self._open.pop(id, None) or self._again(queries, id, stored[_FIRST], row.seq)
        if before is None:
            self._findings.add("record", f"event {row.seq}", f"an earlier event of message {id}", "none", row.seq)
            return
        self._check(id, row, stored, apply_growth(*before, body))

    def finish(self) -> None:
        """Report incomplete messages at the end of the log."""
        for id in self._open:
            self._findings.add("missing", f"message {id}", "the last event of its row", "none")

    def _check(self, id: str, row: Row, stored: Any, content: _Content) -> None:
        if stored[_LAST] > row.seq:
            self._open[id] = content
            return
        compare_json(self._findings, f"message {id}, its parts", list[Json](content[0]), stored[2], row.seq)
        compare_json(self._findings, f"message {id}, its metadata", content[1], stored[3], row.seq)

    def _again(self, queries: Queries, id: str, first: int, before: int) -> _Content | None:
        """Fold the earlier events of a message again. This is needed if an import extended the message after it was compared."""
        found: list[_Content] = []
        for row in log_rows(queries, self._no, first - 1, before - 1):
            if row.kind != "message" or id.encode() not in (row.body or b""):
                continue
            try:
                body = read_object(row.body)
            except ValueError:
                continue  # already reported
            if body.get("id") == id:
                found.append(apply_growth(*found[-1], body) if found and is_growth(body) else _content(body))
                del found[:-1]
        return found[-1] if found else None


def _content(body: JsonObject) -> _Content:
    metadata = body.get("metadata")
    try:
        parts = parts_of(body.get("parts", []))
    except ValueError:
        parts = ()
    return parts, metadata if isinstance(metadata, dict) else {}


class CompactionJudge:
    """The check of a conversation's summaries."""

    def __init__(self, no: int, findings: Findings) -> None:
        self._no = no
        self._findings = findings
        self._expected: dict[str, Compaction] = {}

    def note(self, row: Row, body: JsonObject) -> None:
        """Handle a `tree` event if it records, changes or withdraws a summary."""
        if (found := Compaction.of_body(body, row.seq)) is not None:
            self._expected.pop(found.through, None)
            if found.summary:
                self._expected[found.through] = found

    def finish(self, queries: Queries, *, complete: bool) -> None:
        """Compare the rows with the log, if the log is complete."""
        if not complete:
            return
        stored = {one.through: replace(one, at=0) for one in compactions(queries, self._no)}
        for through in sorted({*stored, *self._expected}):
            expected, found = self._expected.get(through), stored.get(through)
            if expected != found:
                words, others = (f"that of event {one.seq}" if one is not None else "none" for one in (expected, found))
                self._findings.add("record", f"the summary through message {through}", words, others, expected and expected.seq)


_ENDED = ("eof", "cut", "cancelled")
_ALWAYS = ("raw_reason", "usage", "cost", "metadata")  # fields of an ending that only the translator knows


def exchange_row(queries: Queries, id: str) -> Exchange | None:
    row: Any = queries.execute(f"SELECT {EXCHANGE} WHERE e.id = ?", (id,)).fetchone()
    return None if row is None else exchange_of(row)


class ExchangeJudge:
    """The check of an exchange, from its start to its end."""

    def __init__(self, queries: Queries, exchange: Exchange, findings: Findings, translators: Translators) -> None:
        self.exchange = exchange
        self._findings = findings
        self._again: Retranslation | None = None
        self._translated = newest_of(queries, exchange.id)
        self._of_newest = False
        """True if the newest translation is compared instead of the original one."""
        receipt = findings.receipt
        receipt.exchanges += 1
        receipt.translated += self._translated is not None
        if "redacted" in exchange.request:  # redacted raw produces different chunks
            receipt.redacted_exchanges += 1
            return
        translator = translators(exchange.converter)
        version = 0 if translator is None else translator.version
        if self._translated is not None and version == converter_of(self._translated.converter).version:
            self._of_newest = True
        elif translator is None or version != converter_of(exchange.converter).version:
            receipt.not_rebuilt[exchange.converter] = receipt.not_rebuilt.get(exchange.converter, 0) + 1
            return
        assert translator is not None
        try:
            self._again = Retranslation(translator, exchange.options)
            receipt.rebuilt += 1
        except TranslatorFailed as error:
            self._give_up(error, f"exchange {exchange.id}", None)

    def shown(self, queries: Queries, row: Row) -> tuple[Chunk, ...] | None:
        """Return the event's chunks in the newest translation; None if they are the same as in the log."""
        return None if self._translated is None else self._translated.chunks(queries, row.seq)

    def raw(self, queries: Queries, row: Row) -> tuple[Chunk, ...] | None:
        """Check the chunks of a raw event and return those that readers see. None means that they are the chunks in the log."""
        newer = self.shown(queries, row)
        if self._again is None or row.raw is None:
            return newer
        stored = row.chunks if newer is None or not self._of_newest else dumps(newer)
        try:
            made = self._again.feed(row.raw, None if row.body is None else read_object(row.body))
            content = dumps(made)
        except (TranslatorFailed, ValueError) as error:
            self._give_up(error, f"event {row.seq}", row.seq)
            return newer
        if content != stored:
            self._differ(row, made, stored)
            return newer
        return made if newer is None else newer

    def end(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Compare the closing chunks, the ending, and the row."""
        ended = body.get("ended")
        kept: Any = queries.execute("SELECT ended FROM exchange WHERE id = ?", (self.exchange.id,)).fetchone()
        if kept != (ended,):
            expected = f"ended {ended!r}, according to event {row.seq}"
            self._findings.add("record", f"exchange {self.exchange.id}", expected, f"{kept and kept[0]!r}", row.seq)
        if self._again is None or ended not in _ENDED:
            return
        try:
            chunks, ending = self._again.close(ended)
        except TranslatorFailed as error:
            self._give_up(error, f"event {row.seq}", row.seq)
            return
        newer = self.shown(queries, row) if self._of_newest else None
        stored = row.chunks if newer is None else dumps(newer)
        if dumps(chunks) != stored:
            self._differ(row, chunks, stored, closing=True)
        if self._of_newest and self._translated is not None:
            body = self._translated.ending(queries)
        if (found := _ending(ending, body)) is not None:
            self._findings.add("ending", f"event {row.seq}", f"{found.where}: {found.expected}", f"{found.where}: {found.found}", row.seq)

    def _differ(self, row: Row, made: tuple[Chunk, ...], data: bytes, *, closing: bool = False) -> None:
        try:
            stored = list(read_chunks(data))
        except ValueError:
            return  # already reported as unreadable
        if closing and stored and stored[-1].get("type") == "data-attempt":
            stored.pop()  # added by moot after an abandoned attempt
        # serialized and parsed again, so that only what can be stored is compared
        found = first_difference(list[Json](read_chunks(dumps(made))), list[Json](stored))
        if found is not None:
            where = f"{'translation, ' if self._of_newest else ''}chunks{found.where}"
            self._findings.add("chunks", f"event {row.seq}", f"{where}: {found.expected}", f"{where}: {found.found}", row.seq)

    def _give_up(self, error: Exception, where: str, seq: int | None) -> None:
        self._again = None
        self._findings.add("unreadable", where, "chunks from its raw bytes", str(error), seq)


def _ending(made: Ending, stored: JsonObject) -> Difference | None:
    """Return the first difference of the endings. Errors detected by moot, such as a broken connection, are not the translator's."""
    names = _ALWAYS if FAILED_BY_MOOT.items() <= stored.items() else ("finish_reason", "error", *_ALWAYS)
    expected = parse_stored_object(dumps(made.to_json()))  # in stored form
    return first_difference({name: expected.get(name) for name in names}, {name: stored.get(name) for name in names})
