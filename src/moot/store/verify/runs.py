"""Checking one run: its message is folded again, its sums recomputed, and its row compared with the log."""

from __future__ import annotations

from typing import Any

from moot.convert.differences import first_difference
from moot.convert.fold import Folder
from moot.convert.totals import totals
from moot.store.connect import Queries
from moot.store.rows import MESSAGE, kept
from moot.store.verify.findings import Findings
from moot.store.verify.rows import Row
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.run import TERMINAL
from moot.types.verify import DamageKind

__all__ = ["RunJudge", "compare_json", "message_row"]

_RUN = "id, no, message, status, usage, cost, result_seq, last_seq, conversation"


def message_row(queries: Queries, id: str) -> Any:
    """Return a row of `MESSAGE`, or None."""
    return queries.execute(
        f"SELECT {MESSAGE} FROM message AS m JOIN conversation AS c ON c.no = m.conversation WHERE m.id = ?", (id,)
    ).fetchone()


def compare_json(findings: Findings, where: str, expected: Json, stored: bytes, seq: int, run: str | None = None) -> None:
    """Add a damage if the stored JSON differs."""
    if dumps(expected) == stored:
        return
    try:
        found = first_difference(kept(dumps(expected)), kept(stored))
    except ValueError as error:
        findings.add("unreadable", where, "JSON", f"{error}", seq, run)
        return
    if found is not None:
        findings.add("message", where, f"{found.where}: {found.expected}", f"{found.where}: {found.found}", seq, run)


class RunJudge:
    """A run from its first event to its end."""

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
        """Return None if the conversation has no such run."""
        row: Any = queries.execute(f"SELECT {_RUN} FROM run WHERE no = ?", (no,)).fetchone()
        return None if row is None or row[8] != conversation else RunJudge(row[0], row[1], row[2], findings)

    def feed(self, chunks: tuple[Chunk, ...]) -> None:
        self._folder.feed_all(chunks)

    def note(self, row: Row, body: JsonObject) -> None:
        """Collect an event of the journal."""
        if row.key is not None and row.key.startswith("llm:") and row.phase in ("start", "end"):
            self._journal.append(Event(row.kind, phase=row.phase, key=row.key, body=body))  # type: ignore[arg-type]

    def end(self, queries: Queries, row: Row, body: JsonObject) -> None:
        """Compare the run's final state with what is stored; `row` is its last event."""
        status = body.get("status")
        stored: Any = queries.execute(f"SELECT {_RUN} FROM run WHERE no = ?", (self.no,)).fetchone()
        usage, cost, _ = totals(self._journal)
        where = f"run {self.id}"
        sums: JsonObject = {"usage": usage.to_json(), "cost": cost}
        expected: JsonObject = {"status": status, **sums, "result_seq": row.seq, "last_seq": row.seq}
        try:
            found: JsonObject = {"status": stored[3], "usage": kept(stored[4]), "cost": stored[5]}
        except ValueError as error:
            self._add("unreadable", where, "usage in JSON", str(error), row.seq)
            return
        found |= {"result_seq": stored[6], "last_seq": stored[7]}
        if (apart := first_difference(expected, found)) is not None:
            self._add("record", where, f"{apart.where}: {apart.expected}", f"{apart.where}: {apart.found}", row.seq)
        message = message_row(queries, self.message)
        if message is None:
            self._add("missing", f"message {self.message}", "the run's message", "no row", row.seq)
            return
        if (message[7], message[11]) != (status, row.seq):
            words = f"{status}, folded through {row.seq}"
            self._add("record", f"message {self.message}", words, f"{message[7]}, folded through {message[11]}", row.seq)
        self.compare(message, row.seq)

    def live(self, queries: Queries) -> Any:
        """Return the message row of an unfinished run; None, with a damage, if it has ended or has no message."""
        row: Any = queries.execute("SELECT status FROM run WHERE no = ?", (self.no,)).fetchone()
        if row[0] in TERMINAL:
            self._add("missing", f"run {self.id}", "the event that ends it", f"none, although it is {row[0]}", None)
            return None
        message = message_row(queries, self.message)
        if message is None:
            self._add("missing", f"message {self.message}", "the run's message", "no row", None)
        return message

    def compare(self, message: Any, seq: int) -> None:
        """Compare the fold so far with a message's row."""
        where = f"message {self.message}"
        compare_json(self._findings, f"{where}, its parts", list[Json](self._folder.parts()), message[2], seq, self.id)
        compare_json(self._findings, f"{where}, its metadata", self._folder.metadata(), message[3], seq, self.id)

    def _add(self, kind: DamageKind, where: str, expected: str, found: str, seq: int | None) -> None:
        self._findings.add(kind, where, expected, found, seq, self.id)
