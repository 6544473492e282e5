"""Caches shared by the requests of one server: encoded frames, and answers that callers received."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

import anyio

from moot.convert.callers.pieces import answer_digest, pieces_of
from moot.types.served import Served
from moot.types.store import OwnerStore

_KEPT = 4


@dataclass(slots=True, kw_only=True)
class StreamTiming:
    """Timing of streams, in seconds."""

    heartbeat: float = 15.0
    """Interval of keep-alive comments, minus one check."""
    check_interval: float = 2.5
    """Interval between checks of these limits and of the token."""
    stall_timeout: float = 30.0
    """Maximum time a client may accept no data before the stream is closed."""
    close_timeout: float = 300.0
    """Additional time for the client to read the closing message."""


class Encoded(NamedTuple):
    """Encoded frames, and the state of the client's step after them."""

    data: bytes
    step: Literal["open", "closed", "left"]


class Shared:
    """Cache of the last encoded frames for other watchers; it is small, because watchers move together."""

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
        """Register an open stream for the duration of the block; `check` makes it check whether it must end."""
        self._open.add(check)
        try:
            yield
        finally:
            self._open.discard(check)

    def check(self) -> None:
        """Make all open streams check whether they must end, because the server stops or a token was revoked."""
        for check in tuple(self._open):
            check()

    def shared(self, *key: object) -> Shared:
        """Return the cache shared by watchers of the same events in the same form. It exists as long as one of them does."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = Shared()
        return found

    @asynccontextmanager
    async def lock(self, owner: str, conversation: str) -> AsyncGenerator[None]:
        """Allow one request to a conversation at a time, so that a repeated prompt finds the first one."""
        key = (owner, conversation)
        found = self._locks.get(key)
        if found is None:
            found = self._locks[key] = anyio.Lock()
        async with found:
            yield


MOST = 10_000
"""Number of remembered answers. Continuing from an older one starts a new conversation; nothing is lost."""

_PAGE = 500


class AnswerLocation(NamedTuple):
    conversation: str
    message: str


class AnswerIndex:
    """Index of one server's answers by owner and digest."""

    def __init__(self) -> None:
        self._locations: OrderedDict[tuple[str, str], AnswerLocation] = OrderedDict()
        self._earlier: dict[str, dict[str, list[str]]] = {}
        """For each owner, the runs that existed before this server's first look-up, by request digest, newest first."""
        self._looking = anyio.Lock()

    def remember(self, owner: str, digest: str, location: AnswerLocation) -> None:
        self._locations[owner, digest] = location
        self._locations.move_to_end((owner, digest))
        if len(self._locations) > MOST:
            self._locations.popitem(last=False)

    async def find(self, store: OwnerStore, owner: str, digest: str, before: str) -> AnswerLocation | None:
        """Return the stored location of the answer with `digest` to the request with digest `before`; None if it is unknown."""
        location = self._locations.get((owner, digest))
        if location is not None:
            self._locations.move_to_end((owner, digest))
            return location
        async with self._looking:
            if owner not in self._earlier:
                self._earlier[owner] = await _runs_of(store)
        for id in self._earlier[owner].get(before, ()):
            run = await store.records.run(id)
            served = Served.of(run.settings) or Served()
            message = await store.conversations.message(run.message)
            if answer_digest(before, pieces_of(message.parts, served.takes)) == digest:  # the answer as its caller received it
                location = AnswerLocation(run.conversation, run.message)
                self.remember(owner, digest, location)
                return location
        return None


async def _runs_of(store: OwnerStore) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    last: int | None = None
    checked = 0
    while checked < MOST and (page := await store.records.runs(statuses=frozenset({"finished"}), limit=_PAGE, before=last)):
        for run in page:
            served = Served.of(run.settings)
            if served is not None and served.digest:
                found.setdefault(served.digest, []).append(run.id)
        last = page[-1].no
        checked += len(page)
    return found
