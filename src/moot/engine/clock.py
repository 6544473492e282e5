"""The clock of a process: a single loop for all work that is due at a certain time."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from moot.types.ids import Clock as Time

LONGEST_SLEEP = 30.0
"""Maximum number of seconds between two readings of the time, because the system clock may jump and the machine may sleep."""

SPARE = 64
"""The heap is rebuilt when it has more outdated items than there are entries, plus this number."""

Work = Callable[[], Awaitable[None]]

log = logging.getLogger("moot.engine")


class Clock:
    """Entries, each with a key, a due time and work to do. A single task waits for the earliest entry, no matter how many there are."""

    def __init__(self, time: Time, group: TaskGroup) -> None:
        self._time = time
        self._group = group
        self._entries: dict[str, tuple[int, Work]] = {}
        self._heap: list[tuple[int, str]] = []
        """Due times and keys of all entries, and of some that have been replaced or removed."""
        self._earlier = anyio.Event()
        self._is_running = False

    def at(self, key: str, due: int, work: Work) -> None:
        """Do the work once, at or soon after a time in ms since the epoch. This replaces an existing entry with the same key."""
        known = self.due(key)
        self._entries[key] = due, work
        if known == due:
            return
        heapq.heappush(self._heap, (due, key))
        if len(self._heap) > 2 * len(self._entries) + SPARE:
            self._heap = sorted((due, key) for key, (due, _) in self._entries.items())
        if not self._is_running:
            self._is_running = True
            self._group.start_soon(self._loop)
        if self._heap[0] == (due, key):
            self._earlier.set()

    def cancel(self, key: str) -> None:
        """Remove an entry, if it exists."""
        self._entries.pop(key, None)

    def due(self, key: str) -> int | None:
        """Return the time of an entry in ms, or None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def __len__(self) -> int:
        return len(self._entries)

    async def _loop(self) -> None:
        while True:
            self._earlier = anyio.Event()
            self._start_due()
            with anyio.move_on_after(self._seconds()):
                await self._earlier.wait()

    def _start_due(self) -> None:
        now = self._time.now() // 1000
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            entry = self._entries.get(key)
            if entry is not None and entry[0] == due:
                del self._entries[key]
                self._group.start_soon(self._do, key, entry[1])

    def _seconds(self) -> float | None:
        if not self._heap:
            return None
        return min(max(self._heap[0][0] / 1000 - self._time.now() / 1_000_000, 0.001), LONGEST_SLEEP)

    async def _do(self, key: str, work: Work) -> None:
        try:
            await work()
        except Exception as error:
            log.error("%s failed when it was due: %s", key, error, exc_info=error)
