"""The event log: appending events, and reading them from segments and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from moot.errors import FenceLost, StoreError
from moot.store import lookup
from moot.store.database.connection import Connection
from moot.store.database.reader import Joint, Reader
from moot.store.database.transaction import FencedAppend, Transaction
from moot.store.database.writer import Writer
from moot.store.log import changes as changing
from moot.store.log.events import Events
from moot.store.lookup import CONVERSATION_OWNED
from moot.types.canonical import dumps
from moot.types.event import Event
from moot.types.store import Change, CloseExchange, Fence, OpenExchange, RecordUsage


class SqliteLogReader:
    """The SQLite implementation of `LogReader`."""

    def __init__(self, reader: Reader, events: Events, owner: str | None = None) -> None:
        self._reader = reader
        self._events = events
        self._owner = owner

    async def read(
        self, conversation: str, *, after: int = 0, limit: int = 512, run: str | None = None, newest: bool = False
    ) -> list[Event]:
        def page(connection: Connection) -> list[Event]:
            return self._events.page(connection, lookup.number(connection, conversation, self._owner), after, limit, run, newest=newest)

        return await self._reader.read(page)

    async def last_seq(self, conversation: str) -> int:
        def head(connection: Connection) -> int:
            row = connection.execute(
                "SELECT next_seq - 1 FROM log_head WHERE conversation = ?", (lookup.number(connection, conversation, self._owner),)
            ).fetchone()
            return 0 if row is None else row[0]

        return await self._reader.read(head)

    async def last_seqs(self, conversations: Sequence[str]) -> dict[str, int]:
        sql = (
            "SELECT c.id, h.next_seq - 1 FROM json_each(?) AS j JOIN conversation AS c ON c.id = j.value"
            f" JOIN log_head AS h ON h.conversation = c.no WHERE true{CONVERSATION_OWNED}"
        )
        wanted = dumps(list(conversations)).decode()

        return await self._reader.read(lambda connection: {row[0]: row[1] for row in connection.execute(sql, (wanted, self._owner))})


class EventLog(SqliteLogReader):
    """The SQLite implementation of `Log`."""

    def __init__(self, writer: Writer, reader: Reader, events: Events, has_file: Callable[[str], bool]) -> None:
        super().__init__(reader, events)
        self._writer = writer
        self._has_file = has_file

    async def append(
        self, conversation: str, events: Sequence[Event], *, fence: Fence | None = None, changes: Sequence[Change] = (), sync: bool = False
    ) -> range:
        if not events and not changes:
            return range(0)
        if fence is None:
            return await self._writer.write(
                partial(_append_outside, self._has_file, conversation, events, changes), conversation, sync=sync
            )
        return await self._writer.write(_Append(self._has_file, conversation, events, fence, changes), conversation, sync=sync)


@dataclass(frozen=True, slots=True)
class _Append(Joint):
    has_file: Callable[[str], bool]
    conversation: str
    events: Sequence[Event]
    fence: Fence
    changes: Sequence[Change]

    @classmethod
    def run_batch(cls, works: Sequence[_Append], transaction: Transaction) -> list[range]:
        appends = [
            FencedAppend(transaction.conversation_no(work.conversation), work.events, work.fence.run, work.fence.number) for work in works
        ]
        added = transaction.add_held(appends)
        return [work.change(transaction, held, seqs) for work, held, seqs in zip(works, appends, added, strict=True)]

    def change(self, transaction: Transaction, held: FencedAppend, seqs: range | None) -> range:
        """Apply the changes and return the seqs. Raise FenceLost if nothing was added."""
        if seqs is None:
            row = transaction.row("SELECT fence, status FROM run WHERE no = ?", (transaction.run_no(held.run),))
            raise FenceLost(
                f"This process no longer owns the run {held.run!r}: {_holder(row)}.",
                fix="Nothing was added. Another process may have taken over the run.",
            )
        if self.changes:
            target = changing.Target(self.fence, held.conversation, seqs.stop - 1, self.has_file)
            for change in self.changes:
                changing.apply_change(transaction, target, change)
        return seqs


def _append_outside(
    has_file: Callable[[str], bool], conversation: str, events: Sequence[Event], changes: Sequence[Change], transaction: Transaction
) -> range:
    for run in {event.run for event in events if event.run is not None}:
        row = transaction.row("SELECT fence, status FROM run WHERE id = ?", (run,))
        if row is None or row[1] in ("queued", "running", "waiting", "interrupted"):
            raise FenceLost(f"Only the owner of the run {run!r} can add events to it: {_holder(row)}.", fix="Append with the run's fence.")
    no = transaction.conversation_no(conversation)
    if not all(_is_outside(transaction, change) for change in changes):
        raise StoreError("Only the owner of a run can change its state. Append with the run's fence.")
    seqs = transaction.add(no, events)
    target = changing.Target(Fence(conversation, "", "", 0), no, seqs.stop - 1, has_file)
    for change in changes:
        changing.apply_change(transaction, target, change)
    return seqs


def _is_outside(transaction: Transaction, change: Change) -> bool:
    if isinstance(change, RecordUsage):
        return transaction.row("SELECT run FROM exchange WHERE id = ?", (change.exchange,)) == ("",)
    if isinstance(change, OpenExchange):
        row = transaction.row("SELECT run FROM exchange WHERE id = ?", (change.exchange.id,))
        return change.exchange.run == "" and (row is None or row[0] == "")
    return isinstance(change, CloseExchange) and transaction.row("SELECT run FROM exchange WHERE id = ?", (change.id,)) in (("",), None)


def _holder(row: Any) -> str:
    return "it does not exist" if row is None else f"its fence is {row[0]} and it is {row[1]}"
