"""Hands committed events to each watcher of this process; what came from other processes is read from the store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import monotonic

import anyio

from moot.errors import MootError
from moot.runtime.ticks import Ticks
from moot.types.event import Event
from moot.types.store import Store

MAILBOX = 256
"""Batches that wait for a slow watcher; when there are more it catches up from the store, so memory stays bounded."""

PAGE = 512

REST = 0.02
"""Seconds after which a patient reader is rung at once again; less than a beat of the providers, which put together what comes in one."""

REMEMBERED = 1024
"""Conversations whose last event is known without a look into the store."""


_DELTAS = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})


class Watch:
    """One reader of a conversation, made by `Hub.reader` and closed by whoever made it.

    `ring` is called, never more than needed, when `take` has something; it must not block and not raise. A reader that is `patient` is
    rung for deltas alone only at the next tick. A slow one is not waited for: its mailbox is emptied, and it reads the store.
    """

    __slots__ = ("_batches", "_conversation", "_hub", "_patient", "_position", "_put_off", "_ring", "_rung", "_stale", "_store", "_woken")

    def __init__(self, hub: Hub, store: Store, conversation: str, after: int, ring: Callable[[], None], *, patient: bool) -> None:
        self._hub = hub
        self._store = store
        self._conversation = conversation
        self._position = after
        """Of the last event that was taken."""
        self._ring = ring
        self._patient = patient
        self._batches: deque[tuple[Event, ...]] = deque()
        self._stale = not hub.is_last(conversation, after)
        self._rung = False
        """`take` has not been called since the last ring."""
        self._put_off = False
        self._woken = -REST
        """When it was rung last."""

    async def take(self) -> list[Event]:
        """What has come since the last time, in order and without a gap; empty when nothing has. After something, ask again."""
        self._rung = False
        while True:
            if self._stale:
                self._batches.clear()
                self._stale = False  # what is committed from here on is in the mailbox, or makes it stale again
                page = await self._store.log.read(self._conversation, after=self._position, limit=PAGE)
                self._stale = self._stale or len(page) == PAGE
                if page:
                    self._position = page[-1].seq
                    return page
            taken = self._from_mailbox()
            if taken or not self._stale:
                return taken

    @property
    def lags(self) -> bool:
        """Whether it must look into the store."""
        return self._stale

    def close(self) -> None:
        """Takes the reader out of the hub."""
        self._batches.clear()
        self._hub.leave(self._conversation, self)

    @property
    def reached(self) -> int:
        """The last event that was taken or waits in the mailbox."""
        return self._batches[-1][-1].seq if self._batches else self._position

    def put(self, batch: tuple[Event, ...]) -> None:
        """For the hub: what has just been committed."""
        if len(self._batches) >= MAILBOX:
            self._batches.clear()
            self._stale = True
        elif not self._stale:
            self._batches.append(batch)
        if self._rung:
            return
        if not self._patient or not _only_deltas(batch):
            self.wake()
        elif not self._put_off:
            if monotonic() - self._woken >= REST:  # it has had its rest: what comes slowly is shown as it comes
                self.wake()
            else:
                self._put_off = True
                self._hub.ticks.soon(self.wake)

    def touch(self) -> None:
        """For the hub: something was committed that only the store has."""
        self._stale = True
        self.wake()

    def wake(self) -> None:
        """Rings, unless it has."""
        self._put_off = False
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
                self._stale = True  # somebody else committed in between
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
    """One per process. `publish` never waits for a watcher."""

    def __init__(self, store: Store) -> None:
        self.published = 0
        """Events that were committed by this process's runs."""
        self._store = store
        self._watchers: dict[str, list[Watch]] = {}
        self._last: dict[str, int] = {}
        """The last seq of conversations in which this process has just committed; only what is certain."""
        self.ticks = Ticks()
        self._foreign = anyio.Event()
        self._wanted = anyio.Event()
        self._listeners = 0
        self._polling = anyio.CancelScope()

    def publish(self, conversation: str, seqs: range, events: Sequence[Event]) -> None:
        """Shows what this process has just committed."""
        self.published += len(events)
        if conversation in self._last:
            self._last[conversation] = seqs[-1]
        watchers = self._watchers.get(conversation)
        if watchers:
            # _replace costs four times as much, and this runs for every frame
            batch = tuple([Event._make((*event[:9], seq, event[10])) for event, seq in zip(events, seqs, strict=True)])
            for watcher in watchers:
                watcher.put(batch)

    def touch(self, conversation: str, last: int = 0) -> None:
        """Something of this process was committed that `publish` was not told of; its last seq where that is the conversation's."""
        self._last.pop(conversation, None)
        if last:
            if len(self._last) >= REMEMBERED:
                del self._last[next(iter(self._last))]
            self._last[conversation] = last
        for watcher in self._watchers.get(conversation, ()):
            watcher.touch()

    def is_last(self, conversation: str, seq: int) -> bool:
        """Whether nothing is behind that event, as far as this process knows for certain; whatever comes is told to its watchers."""
        return self._last.get(conversation) == seq

    def reader(self, conversation: str, ring: Callable[[], None], *, after: int = 0, patient: bool = False) -> Watch:
        """A reader of every event behind `after`; the caller closes it."""
        watch = Watch(self, self._store, conversation, after, ring, patient=patient)
        self._watchers.setdefault(conversation, []).append(watch)
        self._listen(1)
        return watch

    def leave(self, conversation: str, watch: Watch) -> None:
        """For `Watch.close`; nothing happens the second time."""
        watchers = self._watchers.get(conversation, [])
        if watch in watchers:
            watchers.remove(watch)
            self._listen(-1)
            if not watchers:
                del self._watchers[conversation]

    async def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """As `Tail.watch`."""
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
        """Something at once, then each time another process may have committed; closed by the caller with `aclosing`."""
        self._listen(1)
        try:
            bell = self._foreign
            yield
            while True:
                await bell.wait()
                bell = self._foreign  # taken before the caller looks, so that a commit meanwhile rings it
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
        """Follows other processes' commits while somebody listens; one task of the runtime runs it."""
        while True:
            await self._wanted.wait()
            with anyio.CancelScope() as self._polling:
                async with aclosing(self._store.foreign_commits()) as others:
                    async for _ in others:
                        await self._look()

    def ring(self) -> None:
        """Has everybody who listens look into the store again."""
        self._tell()
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.touch()

    async def _look(self) -> None:
        """Has those look into the store who have something to find there; a conversation that is gone is such a thing."""
        self._last.clear()
        self._tell()
        if not self._watchers:
            return
        try:
            heads = await self._store.log.last_seqs(list(self._watchers))
        except MootError:  # each of them is told by its own look
            heads = {}
        for conversation, watchers in self._watchers.items():
            head = heads.get(conversation)
            for watcher in watchers:
                if head is None or head > watcher.reached:
                    watcher.touch()

    def _tell(self) -> None:
        bell, self._foreign = self._foreign, anyio.Event()
        bell.set()
