"""Caches shared by the requests of one server: encoded stream frames, and the locations of answers that `/v1` callers received."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

import anyio

from moot.convert.callers.pieces import answer_digest, pieces_of
from moot.types.run import Run, RunStatus
from moot.types.served import Served
from moot.types.store import OwnerStore

_KEPT = 4


@dataclass(slots=True, kw_only=True)
class StreamTiming:
    """Timing of streams, in seconds."""

    heartbeat: float = 15.0
    """Maximum time without data before a keep-alive comment is sent."""
    check_interval: float = 2.5
    """Interval between checks of these timeouts and of the token's validity."""
    stall_timeout: float = 30.0
    """Maximum time a client may accept no data before the stream is closed."""
    close_timeout: float = 300.0
    """Additional time for the client to read the closing message."""


class Encoded(NamedTuple):
    """Encoded stream frames, and the state of the client's step after them (see `streams.frames.Step`)."""

    data: bytes
    step: Literal["open", "closed", "left"]


class Shared:
    """Cache of the most recent frames, for other clients of the same stream. It is small because all clients read near the end."""

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[object, ...], Encoded] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> Encoded | None:
        return self._written.get(key)

    def put(self, key: tuple[object, ...], encoded: Encoded) -> None:
        self._written[key] = encoded
        if len(self._written) > _KEPT:
            self._written.popitem(last=False)


class Streams:
    """Open streams of one server."""

    def __init__(self, timing: StreamTiming | None = None) -> None:
        self.timing = timing or StreamTiming()
        self._open: set[Callable[[], None]] = set()
        self._shared: WeakValueDictionary[tuple[object, ...], Shared] = WeakValueDictionary()
        self._locks: WeakValueDictionary[tuple[str, str], anyio.Lock] = WeakValueDictionary()

    @contextmanager
    def opened(self, check: Callable[[], None]) -> Generator[None]:
        """Register an open stream for the duration of the block. `check` is called when the stream may have to end."""
        self._open.add(check)
        try:
            yield
        finally:
            self._open.discard(check)

    def check(self) -> None:
        """Make all open streams check whether they must end. Call this when the server stops or a token is revoked."""
        for check in tuple(self._open):
            check()

    def shared(self, *key: object) -> Shared:
        """Return the cache for clients that receive the same events in the same encoding.

        It is dropped when the last client disconnects.
        """
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = Shared()
        return found

    @asynccontextmanager
    async def lock(self, owner: str, conversation: str) -> AsyncGenerator[None]:
        """Allow only one request per conversation at a time, so that a repeated prompt finds the original one."""
        key = (owner, conversation)
        found = self._locks.get(key)
        if found is None:
            found = self._locks[key] = anyio.Lock()
        async with found:
            yield


MOST = 10_000
"""Maximum number of remembered answers. A call that continues from a forgotten answer starts a new conversation; nothing is lost."""

_PAGE = 200
_FINISHED = frozenset[RunStatus]({"finished"})


class AnswerLocation(NamedTuple):
    conversation: str
    message: str


class AnswerIndex:
    """Index of answers by owner and digest, which finds the answer that a `/v1` caller continues from."""

    def __init__(self) -> None:
        self._locations: OrderedDict[tuple[str, str], AnswerLocation] = OrderedDict()
        self._runs: dict[str, _Runs] = {}
        """For each owner, the runs that other processes or an earlier server may have made."""
        self._looking = anyio.Lock()

    def remember(self, owner: str, digest: str, location: AnswerLocation) -> None:
        self._locations[owner, digest] = location
        self._locations.move_to_end((owner, digest))
        if len(self._locations) > MOST:
            self._locations.popitem(last=False)

    async def find(self, store: OwnerStore, owner: str, digest: str, before: str) -> AnswerLocation | None:
        """Return the location of the answer with the given digest, or None if it is unknown. `before` is the digest of its request."""
        location = self._locations.get((owner, digest))
        if location is not None:
            self._locations.move_to_end((owner, digest))
            return location
        async with self._looking:
            runs = self._runs.setdefault(owner, _Runs())
            await runs.update(store)
        for id in reversed(runs.by_request.get(before, ())):
            run = await store.records.run(id)
            served = Served.of(run.settings) or Served()
            message = await store.conversations.message(run.message)
            if answer_digest(before, pieces_of(message.parts, served.takes)) == digest:  # the answer as its caller received it
                location = AnswerLocation(run.conversation, run.message)
                self.remember(owner, digest, location)
                return location
        return None


class _Runs:
    """The finished `/v1` runs of an owner, by the digest of their request, oldest first."""

    def __init__(self) -> None:
        self.by_request: dict[str, list[str]] = {}
        self._known: set[str] = set()

    async def update(self, store: OwnerStore) -> None:
        """Add the runs that have finished since the last update. Runs may finish in any order, so the newest page is always read."""
        found: list[Run] = []
        before: int | None = None
        while len(found) < MOST and (page := await store.records.runs(statuses=_FINISHED, limit=_PAGE, before=before)):
            new = [run for run in page if run.id not in self._known]
            found += new
            before = page[-1].no
            if len(new) < len(page):  # earlier runs are known
                break
        for run in reversed(found):
            self._known.add(run.id)
            served = Served.of(run.settings)
            if served is not None and served.digest:
                self.by_request.setdefault(served.digest, []).append(run.id)
