"""The writer thread, which has the process's only writing connection and commits all queued work together.

Units arrive in a queue. The thread takes all that are waiting, groups them by conversation in order, and runs them in one transaction. If
one fails, the transaction is repeated with each group under a savepoint, so that only the failing unit fails. Then it commits once and
delivers all results.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal, TypeVar

from anyio.lowlevel import current_token

from moot.errors import StoreError, StoreTooNew
from moot.store.database.checkpoint import LIMIT, Checkpointer
from moot.store.database.connection import Connection, connect, sqlite
from moot.store.database.errors import FOREIGN_ERRORS, is_unreliable, translate_error
from moot.store.database.locks import SCRUBBING, FileLock, Presence
from moot.store.database.reader import Unit, do_first, grouped, outcome, settle
from moot.store.database.schema import version_of
from moot.store.database.transaction import Transaction
from moot.types.crash import point
from moot.types.ids import Clock

T = TypeVar("T")

LONGEST = 0.020
"""Seconds of work after which a transaction ends; remaining units go into the next one."""
PAUSE = 0.002
"""Seconds between commits while other processes write too."""
_ASK_AGAIN = 3  # milliseconds that SQLite itself waits for a lock
_PATIENCE = 30.0  # seconds to wait for another process's transaction
_MOST = 4096  # maximum number of units in one transaction


class Writer:
    """The writer of a process for one database."""

    def __init__(
        self, path: Path, clock: Clock, presence: Path, *, durability: Literal["normal", "full"], version: int, protection: FileLock | None
    ) -> None:
        self._path = path
        self._clock = clock
        self._presence_path = presence
        self._scrubbing = FileLock(presence.with_name(SCRUBBING))
        """Lock held by a process while it rewrites the whole database."""
        self._full = durability == "full"
        self._version = version
        self._protection = protection
        self._folding = None if protection else Checkpointer(path)
        self._loop = asyncio.get_running_loop()
        self._backend = current_token().backend_class
        """Cached, because `anyio.lowlevel` looks it up at each call, and the lookup costs six times as much as the call itself."""
        self._pending: list[Unit[object]] = []
        """Units to hand to the thread at the end of this loop iteration."""
        self._queue: SimpleQueue[Sequence[Unit[object]] | None] = SimpleQueue()
        self._waiting: list[Unit[object]] = []
        self._ending = False
        self._connection: Connection | None = None
        self._file: os.stat_result | None = None
        """The file opened by the connection."""
        self._transaction: Transaction | None = None
        self._presence: Presence | None = None
        self._synced = False
        self._suspect = False
        self._not_before = 0.0
        self._thread: threading.Thread | None = None
        self._closed = False
        self.commits = 0
        """Number of commits by this process; only increases."""
        self.begun = 0
        """Number of commits that this process has started; equal to `commits` if none is in progress."""

    async def write(self, work: Callable[[Transaction], T], group: str = "", *, sync: bool = False) -> T:
        """Run `work` and return its result once it is committed (with `sync`: fsynced). Wait for the outcome even if cancelled."""
        await self._backend.checkpoint_if_cancelled()
        unit = Unit(self._loop.create_future(), work, group, sync=sync)
        self._put(unit)
        return await outcome(unit)

    async def run_outside_transaction(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on the writing connection outside transactions, and return its result."""
        unit = Unit(self._loop.create_future(), partial(self._by_itself, work), background=True)
        self._put(unit)
        return await outcome(unit)

    def data_version(self) -> asyncio.Future[int]:
        """Return a future of a number that changes whenever another connection commits, but not when the writer commits."""
        unit = Unit(self._loop.create_future(), self._data_version, background=True)
        self._put(unit)
        return unit.future

    def others(self) -> bool:
        """Return True if another process currently writes to this database."""
        return self._presence is not None and self._presence.others()

    async def close(self) -> None:
        """Commit all queued work, then close."""
        if self._closed:
            return
        self._closed = True
        if self._thread is None:
            return
        unit: Unit[None] = Unit(self._loop.create_future(), self._disconnect, background=True)
        self._pending.append(unit)  # type: ignore[arg-type]
        self._hand_over()
        self._queue.put(None)
        await outcome(unit)
        self._thread.join()

    def _put(self, unit: Unit[T]) -> None:
        if self._closed:
            raise StoreError(f"The store {str(self._path)!r} is closed.")
        if self._thread is None:  # a process that only reads has no writer and does not slow down others
            # a daemon thread: a program that forgets to close the store must still be able to exit
            self._thread = threading.Thread(target=self._main, name="moot-store-writer", daemon=True)
            self._thread.start()
        if not self._pending:
            # hand over all units of a loop iteration at once: one by one, two threads would compete for the interpreter
            self._loop.call_soon(self._hand_over)
        self._pending.append(unit)  # type: ignore[arg-type]

    def _hand_over(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._queue.put(pending)

    def _main(self) -> None:
        while units := self._gather():
            finished = self._between(units) if units[0].background else self._commit(units)
            try:
                self._loop.call_soon_threadsafe(settle, finished)
            except RuntimeError:  # the loop is closed, so no one waits anymore
                return
            if self._folding is not None and self._connection is not None:
                self._folding.committed(self._connection)

    def _gather(self) -> list[Unit[object]]:
        """Return waiting units, oldest first: one unit that runs outside transactions, or the units of the next transaction.

        An empty list means stop.
        """
        waiting = self._waiting
        if not waiting and not self._ending:
            self._take(self._queue.get())
        while len(waiting) < _MOST and not self._ending:
            try:
                self._take(self._queue.get_nowait())
            except Empty:
                break
        count = next((index for index, unit in enumerate(waiting) if unit.background), len(waiting))
        units = waiting[: count or 1]
        del waiting[: count or 1]
        return units

    def _take(self, units: Sequence[Unit[object]] | None) -> None:
        if units is None:
            self._ending = True
        else:
            self._waiting.extend(units)

    def _between(self, units: Sequence[Unit[object]]) -> Sequence[Unit[object]]:
        for unit in units:
            try:
                unit.result = unit.work()
            except Exception as error:  # noqa: BLE001 - passed on to the caller
                unit.error = translate_error(error, self._path)
        return units

    def _commit(self, units: list[Unit[object]]) -> Sequence[Unit[object]]:
        """Run one transaction and return the units whose outcome is known; the others run in the next transaction."""
        wait = self._not_before - time.monotonic()
        if wait > 0 and self.others():  # other processes can write meanwhile
            time.sleep(wait)
        started = time.monotonic()
        applied: list[Unit[object]] = []
        try:
            connection, transaction = self._connected()
            sync = self._full or any(unit.sync for unit in units)
            if sync != self._synced:  # FULL makes the commit fsync the log, including all earlier commits
                connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
                self._synced = sync
            with self._protected():
                self._begin(connection)
                started = time.monotonic()
                rest = self._apply(connection, transaction, units, applied, started + LONGEST)
                self.begun += 1
                point("store.before-commit")
                connection.execute("COMMIT")
                point("store.after-commit")
        except Exception as error:  # noqa: BLE001 - passed on to the callers
            self.begun = self.commits
            self._recover(error)
            reason = translate_error(error, self._path)
            for unit in units:
                unit.error = unit.error or reason
            return units
        self.commits += 1
        self._waiting[:0] = rest
        ended = time.monotonic()
        self._not_before = ended + max(PAUSE, ended - started)
        return applied

    def _apply(
        self, connection: Connection, transaction: Transaction, units: Sequence[Unit[object]], applied: list[Unit[object]], until: float
    ) -> list[Unit[object]]:
        """Run the units and return the unfinished ones. A savepoint costs as much as a row, so the first attempt uses none."""
        groups = deque(grouped(units))
        try:
            while groups:
                if applied and time.monotonic() > until:
                    return [unit for left in groups for unit in left]
                applied.extend(do_first(groups, transaction))
        except Exception:
            if not connection.in_transaction:  # SQLite has rolled back the whole transaction
                raise
            connection.execute("ROLLBACK")
            transaction.forget()
            applied.clear()
            self._begin(connection)
            return self._apply_apart(connection, transaction, list(grouped(units)), applied)
        return []

    def _apply_apart(
        self, connection: Connection, transaction: Transaction, groups: Sequence[list[Unit[object]]], applied: list[Unit[object]]
    ) -> list[Unit[object]]:
        until = time.monotonic() + LONGEST
        for index, group in enumerate(groups):
            if index and time.monotonic() > until:
                return [unit for left in groups[index:] for unit in left]
            if not self._apply_group(connection, transaction, group):
                for unit in group:
                    self._apply_group(connection, transaction, (unit,))
            applied.extend(group)
        return []

    def _apply_group(self, connection: Connection, transaction: Transaction, group: Sequence[Unit[object]]) -> bool:
        """Run a group under a savepoint. Return False, with the group undone, if one of several units failed."""
        connection.execute("SAVEPOINT unit")
        try:
            for unit in group:
                unit.result = unit.work(transaction)
        except Exception as error:
            if not connection.in_transaction:  # SQLite has rolled back the whole transaction
                raise
            connection.execute("ROLLBACK TO unit")
            connection.execute("RELEASE unit")
            transaction.forget()
            if len(group) > 1:
                return False
            group[0].error = translate_error(error, self._path) if isinstance(error, FOREIGN_ERRORS) else error
            return True
        connection.execute("RELEASE unit")
        return True

    def _begin(self, connection: Connection) -> None:
        """Start a transaction, retrying often. SQLite's own backoff waits up to 100 ms, so a busy importer would always be first."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != 5 or (time.monotonic() > until and not self._scrubbing.held()):
                    raise
        if version_of(connection) != self._version:
            raise StoreTooNew(f"Another version of moot has upgraded {str(self._path)!r}.", fix="Restart this program.")
        try:
            found = self._path.stat()
        except OSError:
            found = None
        # a deleted file accepts commits, but disappears with the last process using it
        if found is None or self._file is None or not os.path.samestat(found, self._file):
            event = "removed" if found is None else "replaced by another file"
            raise StoreError(
                f"The database {str(self._path)!r} was {event} while it was open.",
                fix="Restore the original file, or restart this program.",
            )

    def _connected(self) -> tuple[Connection, Transaction]:
        if self._connection is None or self._transaction is None:
            if self._presence is None:
                self._presence = Presence(self._presence_path)
            connection = connect(self._path, writing=True)
            self._file = self._path.stat()
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA journal_size_limit = {LIMIT}")
            if self._suspect:
                try:
                    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                    if found != "ok":
                        raise sqlite.DatabaseError(found)
                except BaseException:
                    connection.close()
                    raise
                self._suspect = False
            # only opening waits long, because another process may be recovering the log of a killed one; _begin does its own waiting
            connection.execute(f"PRAGMA busy_timeout = {_ASK_AGAIN}")
            self._synced = False
            self._connection, self._transaction = connection, Transaction(connection, self._clock.now)
        return self._connection, self._transaction

    @contextmanager
    def _protected(self) -> Generator[None]:
        """If SQLite has the WAL-reset bug, prevent other processes from committing or checkpointing during the block."""
        with self._protection or nullcontext():
            yield
            if self._protection and self._connection is not None and self.commits % 64 == 63:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _recover(self, error: Exception) -> None:
        """Roll back an open transaction; after a failed fsync, close the connection."""
        connection = self._connection
        if connection is None:
            return
        if self._transaction is not None:
            self._transaction.forget()
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not is_unreliable(error, self._path):
                return
        except sqlite.Error:
            pass  # the connection is closed below
        self._suspect = True
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection, self._transaction = self._connection, None, None
        if self._folding is not None:
            self._folding.stop()  # the last connection to close checkpoints the whole log
        if connection is not None:
            with self._protection or nullcontext():
                connection.close()
        if self._presence is not None:
            self._presence.leave()
            self._presence = None

    def _by_itself(self, work: Callable[[Connection], T]) -> T:
        connection, _ = self._connected()
        if self._folding is not None:
            self._folding.stop()  # SQLite does not wait for another connection's checkpoint
        with self._protection or nullcontext():
            connection.execute(f"PRAGMA busy_timeout = {int(_PATIENCE * 1000)}")
            try:
                return work(connection)
            finally:
                connection.execute(f"PRAGMA busy_timeout = {_ASK_AGAIN}")

    def _data_version(self) -> int:
        connection, _ = self._connected()
        return int(connection.execute("PRAGMA data_version").fetchone()[0])
