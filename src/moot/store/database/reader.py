"""Units of work for the store's threads, and the reader thread.

Each query sees one snapshot and returns complete values, so no cursor stays open across an await.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from anyio import CancelScope, current_effective_deadline

from moot.errors import StoreError
from moot.store.database.connection import Connection, connect, sqlite
from moot.store.database.errors import FOREIGN_ERRORS, translate_error
from moot.store.database.transaction import Transaction
from moot.store.database.unchanged import read_unchanged

T = TypeVar("T")

_JOINED = 256  # maximum number of units joined, so that they don't far exceed the time for a transaction


class Joint(ABC):
    """Work that can be batched: running several waiting units together costs little more than running one."""

    @classmethod
    @abstractmethod
    def run_batch(cls, works: Sequence[Any], transaction: Transaction) -> Sequence[Any]:
        """Run several units of this class and return their results in order.

        If one fails, its exception is raised, and the caller rolls back all of them.
        """

    def __call__(self, transaction: Transaction) -> Any:
        return self.run_batch((self,), transaction)[0]


class Unit(Generic[T]):
    """A unit of work for another thread. Until it is settled, the loop uses only `future` and `done`, the thread only the other fields."""

    __slots__ = ("background", "done", "error", "future", "group", "result", "sync", "work")

    def __init__(
        self, future: asyncio.Future[T], work: Callable[..., T], group: str = "", *, sync: bool = False, background: bool = False
    ) -> None:
        self.future = future
        self.work = work
        self.group = group
        """Units with the same group run in order. Empty means that the unit is independent of all others."""
        self.sync = sync
        self.background = background
        self.result: T
        self.error: Exception | None = None
        self.done = False
        """True once the outcome is known; set and read on the loop."""


def settle(units: Sequence[Unit[object]]) -> None:
    """Deliver outcomes to the waiting futures; runs on the loop."""
    for unit in units:
        unit.done = True
        future = unit.future
        if future.done():
            continue
        if unit.error is None:
            future.set_result(unit.result)
        else:
            future.set_exception(unit.error)


async def outcome(unit: Unit[T]) -> T:
    """Return the result of a queued unit, waiting for it even if the caller is cancelled. A cancelled scope then takes effect at the
    caller's next await, a cancelled task at once."""
    try:
        await unit.future
    except asyncio.CancelledError:
        by_scope = current_effective_deadline() == -inf  # only then is the cancellation delivered again at the next await
        # the future is cancelled, but the queued work still runs
        with CancelScope(shield=True):
            await _known(unit)
        if not by_scope:
            raise
        if unit.error is not None:
            raise unit.error from None
    return unit.result


async def _known(unit: Unit[T]) -> None:
    while not unit.done:
        unit.future = unit.future.get_loop().create_future()
        try:
            await unit.future
        except asyncio.CancelledError:
            continue
        except Exception:  # noqa: BLE001 - the caller is being cancelled and does not need the outcome
            return


def grouped(units: Iterable[Unit[object]]) -> Iterator[list[Unit[object]]]:
    """Yield the units in lists by their `group`, in order. A unit without a group gets a list of its own."""
    groups: dict[object, list[Unit[object]]] = {}
    for unit in units:
        groups.setdefault(unit.group or unit, []).append(unit)
    yield from groups.values()


def do_first(groups: deque[list[Unit[object]]], transaction: Transaction) -> Sequence[Unit[object]]:
    """Run the first group, joined with following groups where possible, and remove them from the queue."""
    group = groups.popleft()
    first = group[0].work
    if not isinstance(first, Joint) or len(group) > 1:
        for unit in group:
            unit.result = unit.work(transaction)
        return group
    kind, joined = type(first), group
    while groups and len(joined) < _JOINED and len(groups[0]) == 1 and type(groups[0][0].work) is kind:
        joined.append(groups.popleft()[0])
    results = kind.run_batch([unit.work for unit in joined], transaction)
    for unit, result in zip(joined, results, strict=True):
        unit.result = result
    return joined


class Reader:
    """A thread for reads, and for other short blocking work of the store (hashing, files)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Unit[object] | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        # a daemon thread: a program that forgets to close the store must still be able to exit
        self._thread = threading.Thread(target=self._main, name="moot-store-reader", daemon=True)
        self._thread.start()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one snapshot of the database and return its result."""

        def snapshot() -> T:
            try:
                connection = self._connection = self._connection or connect(self._path)
            except sqlite.OperationalError as error:
                return read_unchanged(self._path, work, error)
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

        return await self.call(snapshot)

    async def rows(self, sql: str, values: Sequence[object], of: Callable[[Any], T]) -> list[T]:
        """Run a query and return each row converted by `of`."""
        return await self.read(lambda connection: [of(row) for row in connection.execute(sql, values)])

    async def row(self, sql: str, values: Sequence[object], of: Callable[[Any], T]) -> T | None:
        """Run a query and return its first row converted by `of`, or None."""
        return next(iter(await self.rows(sql, values, of)), None)

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the thread and return its result."""
        if self._closed:
            raise StoreError(f"The store {str(self._path)!r} is closed.")
        unit: Unit[T] = Unit(self._loop.create_future(), work)
        self._queue.put(unit)  # type: ignore[arg-type]
        return await unit.future

    async def close(self) -> None:
        """Close after completing all queued work."""
        if self._closed:
            return
        self._closed = True
        unit: Unit[None] = Unit(self._loop.create_future(), self._disconnect)
        self._queue.put(unit)  # type: ignore[arg-type]
        self._queue.put(None)
        await unit.future
        self._thread.join()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _main(self) -> None:
        while (unit := self._queue.get()) is not None:
            if unit.future.cancelled():
                continue
            try:
                unit.result = unit.work()
            except Exception as error:  # noqa: BLE001 - passed on to the caller
                unit.error = translate_error(error, self._path) if isinstance(error, FOREIGN_ERRORS) else error
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(settle, (unit,))
