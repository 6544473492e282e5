"""Delivery of committed events to this process's watchers. Events of other processes are read from the store."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import monotonic

import anyio

from moot.errors import MootError
from moot.types.event import Event
from moot.types.store import Store

TICK = 0.03
"""Seconds between two ticks, and the longest delay."""


class Ticks:
    """A scheduler that runs callbacks at fixed ticks of the event loop's clock. A timer runs only while a callback is waiting.

    Running everything at the same moment is cheap: a hundred streams wake the loop once, and watchers of one conversation find the same
    events, which are then encoded once.
    """

    def __init__(self, tick: float = TICK) -> None:
        self._tick = tick
        self._waiting: list[Callable[[], None]] = []

    def soon(self, call: Callable[[], None]) -> None:
        """Call the callback at the next tick. It must not raise."""
        if not self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_at((loop.time() // self._tick + 1) * self._tick, self._ring)
        self._waiting.append(call)

    def _ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()


MAILBOX = 256
"""Number of batches kept for a slow watcher.

A watcher that falls further behind reads from the store instead, so that memory stays bounded.
"""

PAGE = 512

REST = 0.02
"""Seconds without a notification after which a patient reader is notified at once. Less than the time between two reads from a provider."""

REMEMBERED = 1024
"""Number of conversations whose last event is remembered."""

_DELTAS = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})


class Watch:
    """A reader of a conversation, created by `Hub.reader` and closed by its owner.

    `ring` is called when `take` has something to return, no more often than needed. It must not block or raise. A `patient` reader is
    notified of deltas only at the next tick. The hub does not wait for slow readers: their mailbox is emptied and they read from the store.
    """

    __slots__ = ("_batches", "_conversation", "_deferred", "_hub", "_patient", "_position", "_ring", "_rung", "_stale", "_store", "_woken")

    def __init__(self, hub: Hub, store: Store, conversation: str, after: int, ring: Callable[[], None], *, patient: bool) -> None:
        self._hub = hub
        self._store = store
        self._conversation = conversation
        self._position = after
        """Seq of the last event taken."""
        self._ring = ring
        self._patient = patient
        self._batches: deque[tuple[Event, ...]] = deque()
        self._stale = not hub.is_last(conversation, after)
        self._rung = False
        """True from a call of `ring` until the next call of `take`."""
        self._deferred = False
        self._woken = -REST
        """Time of the last call of `ring`."""

    async def take(self) -> list[Event]:
        """Return the new events in order and without gaps, or nothing. Call it again as long as it returns events."""
        while True:
            self._rung = False
            if self._stale:
                self._batches.clear()
                self._stale = False  # from now on, committed events go to the mailbox or make it stale again
                page = await self._store.log.read(self._conversation, after=self._position, limit=PAGE)
                self._stale = self._stale or len(page) == PAGE
                if page:
                    self._position = page[-1].seq
                    return page
            taken = self._from_mailbox()
            if taken or not self._stale:
                self._rung = False  # whatever rang while the store was read has been taken; otherwise nothing would wake the caller again
                return taken

    @property
    def lags(self) -> bool:
        """True if the reader must read from the store."""
        return self._stale

    def close(self) -> None:
        """Remove the reader from the hub."""
        self._batches.clear()
        self._hub.leave(self._conversation, self)

    @property
    def reached(self) -> int:
        """Seq of the last event that was taken or is in the mailbox."""
        return self._batches[-1][-1].seq if self._batches else self._position

    def put(self, batch: tuple[Event, ...]) -> None:
        """Add committed events. Called by the hub."""
        if len(self._batches) >= MAILBOX:
            self._batches.clear()
            self._stale = True
        elif not self._stale:
            self._batches.append(batch)
        if self._rung:
            return
        if not self._patient or not _only_deltas(batch):
            self.wake()
        elif not self._deferred:
            if monotonic() - self._woken >= REST:  # a slow stream is shown without delay
                self.wake()
            else:
                self._deferred = True
                self._hub.ticks.soon(self.wake)

    def touch(self) -> None:
        """Make the reader read from the store, because the store has events that the hub does not have. Called by the hub."""
        self._stale = True
        self.wake()

    def wake(self) -> None:
        """Call `ring`, unless it was already called since the last `take`."""
        self._deferred = False
        if not self._rung:
            self._rung = True
            self._woken = monotonic()
            self._ring()

    def _from_mailbox(self) -> list[Event]:
        taken: list[Event] = []
        while self._batches:
            batch = self._batches.popleft()
            first, last = batch[0].seq, batch[-1].seq
            if last <= self._position:
                continue
            if first > self._position + 1:
                self._stale = True  # another process committed in between
                break
            taken.extend(batch[self._position + 1 - first :])
            self._position = last
        return taken


def _only_deltas(batch: tuple[Event, ...]) -> bool:
    for event in batch:
        if event.phase is not None:
            return False
        for chunk in event.chunks:
            if chunk["type"] not in _DELTAS:
                return False
    return True


class Hub:
    """Delivers committed events. There is one hub per process. `publish` never waits for a watcher."""

    def __init__(self, store: Store) -> None:
        self.published = 0
        """Number of events committed by this process's runs."""
        self._store = store
        self._watchers: dict[str, list[Watch]] = {}
        self._last: dict[str, int] = {}
        """Conversation → seq of its last event, if this process committed that event and is certain that no later one exists."""
        self.ticks = Ticks()
        self._foreign = anyio.Event()
        self._wanted = anyio.Event()
        self.observer: Callable[[Sequence[Event]], None] | None = None
        """Called with all events that this process commits; None = no telemetry."""
        self._listeners = 0
        self._polling = anyio.CancelScope()

    def publish(self, conversation: str, seqs: range, events: Sequence[Event]) -> None:
        """Deliver events that this process has just committed."""
        self.published += len(events)
        if self.observer is not None:
            self.observer(events)
        if conversation in self._last:
            self._last[conversation] = seqs[-1]
        watchers = self._watchers.get(conversation)
        if watchers:
            # _replace costs four times as much, and this runs for every frame
            batch = tuple([Event._make((*event[:9], seq, event[10])) for event, seq in zip(events, seqs, strict=True)])
            for watcher in watchers:
                watcher.put(batch)

    def touch(self, conversation: str, last: int = 0) -> None:
        """Note a commit of this process that bypassed `publish`. `last` is the conversation's last seq, if known."""
        self._last.pop(conversation, None)
        if last:
            if len(self._last) >= REMEMBERED:
                del self._last[next(iter(self._last))]
            self._last[conversation] = last
        for watcher in self._watchers.get(conversation, ()):
            watcher.touch()

    def watching(self, conversation: str) -> int:
        """Return the number of live readers of a conversation in this process."""
        return len(self._watchers.get(conversation, ()))

    def is_last(self, conversation: str, seq: int) -> bool:
        """Return True if it is certain that this is the conversation's last event. Later events are delivered to the watchers."""
        return self._last.get(conversation) == seq

    def reader(self, conversation: str, ring: Callable[[], None], *, after: int = 0, patient: bool = False) -> Watch:
        """Return a reader of all events after `after`. The caller closes it."""
        watch = Watch(self, self._store, conversation, after, ring, patient=patient)
        self._watchers.setdefault(conversation, []).append(watch)
        self._listen(1)
        return watch

    def leave(self, conversation: str, watch: Watch) -> None:
        """Unregister a watch. Called by `Watch.close`; further calls have no effect."""
        watchers = self._watchers.get(conversation, [])
        if watch in watchers:
            watchers.remove(watch)
            self._listen(-1)
            if not watchers:
                del self._watchers[conversation]

    async def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """Implement `Tail.watch`."""
        bell = anyio.Event()
        watch = self.reader(conversation, lambda: bell.set(), after=after)
        try:
            while True:
                while taken := await watch.take():
                    yield tuple(taken)
                await bell.wait()
                bell = anyio.Event()
        finally:
            watch.close()

    async def foreign(self) -> AsyncGenerator[None, None]:
        """Yield at once, then whenever another process may have committed. The caller closes it with `aclosing`."""
        self._listen(1)
        try:
            bell = self._foreign
            yield
            while True:
                await bell.wait()
                bell = self._foreign  # read before the caller looks, so that no commit is missed
                yield
        finally:
            self._listen(-1)

    def _listen(self, change: int) -> None:
        self._listeners += change
        if self._listeners:
            self._wanted.set()
        else:
            self._wanted = anyio.Event()
            self._polling.cancel()

    async def poll(self) -> None:
        """Follow other processes' commits while there are listeners. Runs as one task of the runtime."""
        while True:
            await self._wanted.wait()
            with anyio.CancelScope() as self._polling:
                async with aclosing(self._store.foreign_commits()) as others:
                    async for _ in others:
                        await self._check_store()

    def ring(self) -> None:
        """Make all listeners read from the store again."""
        self._ring_foreign()
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.touch()

    async def _check_store(self) -> None:
        """Wake the watchers whose conversation has new events in the store or was deleted."""
        self._last.clear()
        self._ring_foreign()
        if not self._watchers:
            return
        try:
            heads = await self._store.log.last_seqs(list(self._watchers))
        except MootError:  # each watcher gets the error when it reads
            heads = {}
        for conversation, watchers in self._watchers.items():
            head = heads.get(conversation)
            for watcher in watchers:
                if head is None or head > watcher.reached:
                    watcher.touch()

    def _ring_foreign(self) -> None:
        bell, self._foreign = self._foreign, anyio.Event()
        bell.set()
