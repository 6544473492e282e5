"""The reader thread: each query sees one snapshot and returns complete values, so that nothing is open across an await."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from moot.errors import StoreError
from moot.store.connect import Connection, connect
from moot.store.faults import FOREIGN, translated
from moot.store.units import Unit, settle

__all__ = ["Reader"]

T = TypeVar("T")


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
            if self._connection is None:
                self._connection = connect(self._path)
            connection = self._connection
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

        return await self.call(snapshot)

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
                unit.error = translated(error, self._path) if isinstance(error, FOREIGN) else error
            if self._loop.is_closed():
                return
            self._loop.call_soon_threadsafe(settle, (unit,))
