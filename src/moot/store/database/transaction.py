"""An open write transaction. Numbering and inserting events happens only here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, LiteralString, NamedTuple

from moot.errors import NotFound, StoreError
from moot.store.database.connection import Connection
from moot.types.canonical import dumps
from moot.types.event import Event

SEQ_BITS = 32

# Binding bytes or None costs three times as much as the rest of a row, because Python's SQLite modules look for an adapter each time.
# A bytearray avoids the lookup, and the frames of a stream, which are nearly all rows, have no None.
_FRAMES: LiteralString = 'INSERT INTO event (id, at, run, exchange, kind, chunks, raw, "check") VALUES '
_VALUES: LiteralString = "(?, ?, ?, ?, ?, ?, ?, ?)"
_FRAME = f"{_FRAMES}{_VALUES}"
_TOGETHER = {count: f"{_FRAMES}{', '.join([_VALUES] * count)}" for count in (64, 16)}
"""Statements by the number of frames they insert. Releasing the interpreter lock, once per statement, costs more than inserting a row."""
_ANY = 'INSERT INTO event (id, at, run, exchange, kind, chunks, raw, phase, key, body, "check") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
_MESSAGES: LiteralString = 'INSERT INTO event (id, at, kind, chunks, raw, body, "check") VALUES '
_MESSAGE_VALUES: LiteralString = "(?, ?, ?, x'5b5d', ?, ?, ?)"
_MESSAGES_TOGETHER = {count: f"{_MESSAGES}{', '.join([_MESSAGE_VALUES] * count)}" for count in (16, 1)}
_NUMBER = "UPDATE log_head SET next_seq = next_seq + ? WHERE conversation = ?"
_HELD = (
    "SELECT r.no, r.fence, h.conversation, h.next_seq FROM json_each(?) AS asked JOIN run AS r ON r.no = asked.value"
    " JOIN log_head AS h ON h.conversation = r.conversation WHERE r.status = 'running' OR r.status = 'waiting' AND r.owner IS NOT NULL"
)
_NEXT = "UPDATE log_head SET next_seq = ? WHERE conversation = ?"
_REMEMBERED = 10_000
_LENGTHS = struct.Struct(">Qiiiiii").pack


def checksum(
    seq: int, kind: str, chunks: bytes, raw: bytes | None, phase: str | None = None, key: str | None = None, body: bytes | None = None
) -> bytes:
    """Return an event's 8-byte checksum: BLAKE2b over the fields and their lengths, so that no two events have the same encoding."""
    if phase is key is body is None:  # the most common case
        name, content = kind.encode(), raw or b""
        lengths = _LENGTHS(seq, len(name), len(chunks), -1 if raw is None else len(content), -1, -1, -1)
        return blake2b(b"".join((lengths, name, chunks, content)), digest_size=8).digest()
    parts = [kind.encode(), chunks, raw, phase.encode() if phase else None, key.encode() if key is not None else None, body]
    lengths = _LENGTHS(seq, *(-1 if part is None else len(part) for part in parts))
    return blake2b(b"".join((lengths, *(part for part in parts if part))), digest_size=8).digest()


class FencedAppend(NamedTuple):
    """An append by the owner of a run."""

    conversation: int
    events: Sequence[Event]
    run: str
    fence: int


class Entry(NamedTuple):
    """An event outside any run, with an already encoded body."""

    kind: str
    raw: bytes | None
    body: bytes
    at: int = 0
    """Time in microseconds since 1970. 0 means now."""


class _Rows(NamedTuple):
    frames: list[tuple[object, ...]]
    others: list[tuple[object, ...]]


class Transaction:
    """The open transaction that is passed to a unit of work. It is valid only until the work returns."""

    def __init__(self, connection: Connection, now: Callable[[], int]) -> None:
        self.execute = connection.execute
        self._cursor = connection.cursor()
        self._many = self._cursor.executemany
        self._now = now
        self._numbers: dict[str, int] = {}
        """Row numbers by conversation id. They never change while the conversation exists."""
        self._runs: dict[str, int] = {}

    def forget(self) -> None:
        """Drop cached ids, because a transaction that is rolled back may have created them."""
        self._numbers.clear()
        self._runs.clear()

    @property
    def now(self) -> int:
        """The current time in microseconds since 1970."""
        return self._now()

    @property
    def now_ms(self) -> int:
        return self._now() // 1000

    def row(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first row, or None."""
        # fetch all rows: an unfinished statement would prevent the commit
        rows = self._cursor.execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute the statement for each row."""
        self._many(sql, rows)

    def learn(self, conversation: tuple[str, int], run: tuple[str, int]) -> None:
        """Cache the row numbers of a conversation and a run, given as pairs of id and number."""
        _remember(self._numbers, *conversation)
        _remember(self._runs, *run)

    def conversation_no(self, id: str) -> int:
        """Return the row number of a conversation. Raise NotFound if it does not exist."""
        no = self._numbers.get(id)
        if no is None:
            row = self.row("SELECT no FROM conversation WHERE id = ?", (id,))
            if row is None:
                raise NotFound(f"No conversation has the id {id!r}.")
            no = _remember(self._numbers, id, row[0])
        return no

    def add(self, conversation: int, events: Sequence[Event]) -> range:
        """Number and insert the events and return their seqs. Raise NotFound if the conversation no longer exists."""
        seqs, rows = self.number(conversation, len(events)), _Rows([], [])
        self._collect(rows, conversation << SEQ_BITS, seqs.start, events, None)
        self._insert(rows)
        return seqs

    def number(self, conversation: int, count: int) -> range:
        """Assign sequence numbers to `count` events, which must be stored in this transaction.

        Raise NotFound if the conversation is gone.
        """
        head = self.row(f"{_NUMBER} RETURNING next_seq", (count, conversation))
        if head is None:
            raise NotFound("The conversation no longer exists.")
        return range(head[0] - count, head[0])

    def add_encoded(self, conversation: int, entries: Sequence[Entry]) -> range:
        """Like `add`, but faster for many entries."""
        seqs, base, now = self.number(conversation, len(entries)), conversation << SEQ_BITS, self._now()
        rows = [
            (base | seq, at or now, kind, quick(raw), quick(body), quick(checksum(seq, kind, b"[]", raw, None, None, body)))
            for seq, (kind, raw, body, at) in zip(seqs, entries, strict=True)
        ]
        insert_many(self.execute, _MESSAGES_TOGETHER, rows)
        return seqs

    def add_held(self, appends: Sequence[FencedAppend]) -> list[range | None]:
        """Add events for owners of runs, using few statements. For an append with an outdated fence
        or a run that is not running, add nothing and return None."""
        runs = [self.run_no(held.run) for held in appends]
        found: dict[int, tuple[int, int, int]] = {row[0]: row[1:] for row in self.execute(_HELD, (dumps(runs).decode(),))}
        ends: dict[int, int] = {}
        seqs: list[range | None] = []
        rows = _Rows([], [])
        for held, run in zip(appends, runs, strict=True):
            fence, conversation, end = found.get(run, (0, 0, 0))
            if fence != held.fence or conversation != held.conversation:
                seqs.append(None)
                continue
            first = ends.get(conversation, end)
            ends[conversation] = first + len(held.events)
            self._collect(rows, conversation << SEQ_BITS, first, held.events, (held.run, run))
            seqs.append(range(first, ends[conversation]))
        self._many(_NEXT, [(end, conversation) for conversation, end in ends.items()])
        self._insert(rows)
        return seqs

    def run_no(self, id: str) -> int:
        """Return the row number of a run. Raise NotFound if it does not exist."""
        no = self._runs.get(id)
        if no is None:
            row = self.row("SELECT no FROM run WHERE id = ?", (id,))
            if row is None:
                raise NotFound(f"No run has the id {id!r}.")
            no = _remember(self._runs, id, row[0])
        return no

    def _insert(self, rows: _Rows) -> None:
        frames, others = rows
        try:
            done = 0
            for count, statement in _TOGETHER.items():
                while len(frames) - done >= count:
                    self.execute(statement, [value for frame in frames[done : done + count] for value in frame])
                    done += count
            if len(frames) > done:
                self._many(_FRAME, frames[done:])
            if others:
                self._many(_ANY, others)
        except Exception as error:
            raise _explained(error, others) from error

    def _collect(self, rows: _Rows, base: int, seq: int, events: Sequence[Event], run: tuple[str, int] | None) -> None:
        frames, others = rows
        now = self._now()
        exchange_id = exchange_text = None
        run_id, run_no = run or (None, None)
        for kind, chunks, raw, event_run, exchange, phase, key, body, at, _, gone in events:
            if gone is not None:  # a redacted event of an imported recording
                kind, body = "tombstone", {"was": kind, **gone, "body": body}
            content = dumps(chunks)
            if event_run != run_id:
                run_id, run_no = event_run, None if event_run is None else self.run_no(event_run)
                exchange_id = None
            if exchange != exchange_id:
                exchange_id, exchange_text = exchange, _shortened(exchange, run_id)
            if kind == "raw" and raw is not None and run_no is not None and exchange_text is not None and phase is key is body is None:
                lengths = _LENGTHS(seq, 3, len(content), len(raw), -1, -1, -1)
                check = blake2b(b"".join((lengths, b"raw", content, raw)), digest_size=8).digest()
                frames.append((base | seq, at or now, run_no, exchange_text, kind, bytearray(content), bytearray(raw), bytearray(check)))
            else:
                encoded = None if body is None else dumps(body)
                check = checksum(seq, kind, content, raw, phase, key, encoded)
                content_columns = quick(content), quick(raw), phase, key, quick(encoded), quick(check)
                others.append((base | seq, at or now, run_no, exchange_text, kind, *content_columns))
            seq += 1


def insert_many(execute: Callable[..., object], statements: Mapping[int, str], rows: Sequence[tuple[object, ...]]) -> None:
    """Insert the rows, as many as possible with each statement.

    `statements` maps a number of rows to the statement that inserts that many, from the largest number down to 1.
    """
    done = 0
    for count, statement in statements.items():
        while len(rows) - done >= count:
            execute(statement, [value for row in rows[done : done + count] for value in row])
            done += count


def quick(data: bytes | None) -> bytearray | None:
    """Return the bytes as a bytearray, which SQLite binds without looking for an adapter."""
    return None if data is None else bytearray(data)


def _remember(numbers: dict[str, int], id: str, no: int) -> int:
    if len(numbers) >= _REMEMBERED:
        numbers.clear()
    numbers[id] = no
    return no


def _shortened(exchange: str | None, run: str | None) -> str | None:
    """Return the exchange id as stored: `:` and the rest if it starts with the run's id (already in the row), else `=` and the whole id."""
    if exchange is None:
        return None
    return f":{exchange[len(run) :]}" if run and exchange.startswith(run) else f"={exchange}"


def _explained(error: Exception, rows: list[tuple[object, ...]]) -> Exception:
    if "event.key" in str(error):  # the unique index of the journal; not every library has its extended error code
        keys = ", ".join(f"{row[7]} of {row[8]!r}" for row in rows if row[8] is not None)
        return StoreError(f"The run's journal already contains {keys}.")
    return error
