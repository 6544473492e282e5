"""Hands committed events to each watcher of this process; what came from other processes is read from the store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio

from moot.types.event import Event
from moot.types.store import Store

MAILBOX = 256
"""Batches that wait for a slow watcher; when there are more it catches up from the store, so memory stays bounded."""

PAGE = 512


class _Watcher:
    """One reader's mailbox. An empty mailbox with the bell rung means: look into the store."""

    __slots__ = ("batches", "bell", "conversation", "stale")

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.batches: deque[tuple[Event, ...]] = deque()
        self.bell = anyio.Event()
        self.stale = True

    def put(self, batch: tuple[Event, ...]) -> None:
        if len(self.batches) >= MAILBOX:
            self.batches.clear()
            self.stale = True
        elif not self.stale:
            self.batches.append(batch)
        self.bell.set()

    def touch(self) -> None:
        self.stale = True
        self.bell.set()


class Hub:
    """One per process. `publish` never waits for a watcher."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watchers: dict[str, list[_Watcher]] = {}
        self._foreign = anyio.Event()
        self._wanted = anyio.Event()
        self._listeners = 0
        self._polling = anyio.CancelScope()

    def publish(self, conversation: str, seqs: range, events: Sequence[Event]) -> None:
        """Shows what this process has just committed."""
        watchers = self._watchers.get(conversation)
        if watchers:
            # _replace costs four times as much, and this runs for every frame
            batch = tuple([Event._make((*event[:9], seq)) for event, seq in zip(events, seqs, strict=True)])
            for watcher in watchers:
                watcher.put(batch)

    def touch(self, conversation: str) -> None:
        """Something of this process was committed that `publish` was not told of."""
        for watcher in self._watchers.get(conversation, ()):
            watcher.touch()

    async def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """As `Tail.watch`."""
        watcher = _Watcher(conversation)
        self._watchers.setdefault(conversation, []).append(watcher)
        self._listen(1)
        try:
            async with aclosing(self._follow(watcher, after)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._listen(-1)
            watchers = self._watchers[conversation]
            watchers.remove(watcher)
            if not watchers:
                del self._watchers[conversation]

    async def _follow(self, watcher: _Watcher, position: int) -> AsyncGenerator[tuple[Event, ...], None]:
        while True:
            if watcher.stale:
                watcher.stale = False
                watcher.batches.clear()
                more = True
                while more and (page := await self._store.log.read(watcher.conversation, after=position, limit=PAGE)):
                    position = page[-1].seq
                    more = len(page) == PAGE  # what is committed from here on is in the mailbox, or rings the bell
                    yield tuple(page)
            while watcher.batches and not watcher.stale:
                batch = watcher.batches.popleft()
                if batch[-1].seq <= position:
                    continue
                if batch[0].seq > position + 1:
                    watcher.stale = True  # somebody else committed in between
                    break
                if batch[0].seq <= position:
                    batch = batch[position + 1 - batch[0].seq :]
                position = batch[-1].seq
                yield batch
            if not watcher.stale and not watcher.batches:
                await watcher.bell.wait()
            watcher.bell = anyio.Event()

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
                async with aclosing(self._store.others()) as others:
                    async for _ in others:
                        self._ring()

    def _ring(self) -> None:
        bell, self._foreign = self._foreign, anyio.Event()
        bell.set()
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.touch()
