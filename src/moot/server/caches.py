"""Caches shared by the requests of one server: encoded frames, and answers that callers received."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

import anyio

from moot.convert.callers.pieces import answer_digest, pieces_of
from moot.types.run import Run
from moot.types.served import Served
from moot.types.store import OwnerStore

__all__ = ["Given", "Pace", "Place", "Shared", "Streams"]


_KEPT = 4


class Pace:
    """The times of a stream, in seconds."""

    def __init__(self, *, beat: float = 15.0, look: float = 2.5, slow: float = 30.0, stuck: float = 300.0) -> None:
        self.beat = beat
        """A comment goes out when nothing else did for so long, less one look."""
        self.look = look
        """Between two looks at all of this, and at whether the token still stands."""
        self.slow = slow
        """How long a client may take nothing before it is cut."""
        self.stuck = stuck
        """How long we then wait for it to read that it was."""


class Shared:
    """Frames that were written for one watcher and may be wanted by the next one; few, for watchers move together."""

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[object, ...], bytes] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> bytes | None:
        return self._written.get(key)

    def put(self, key: tuple[object, ...], data: bytes) -> None:
        self._written[key] = data
        if len(self._written) > _KEPT:
            self._written.popitem(last=False)


class Streams:
    """One for each server."""

    def __init__(self, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self._open: set[Callable[[], None]] = set()
        self._shared: WeakValueDictionary[tuple[object, ...], Shared] = WeakValueDictionary()
        self._turns: WeakValueDictionary[tuple[str, str], anyio.Lock] = WeakValueDictionary()

    @contextmanager
    def opened(self, look: Callable[[], None]) -> Generator[None]:
        """While the block lasts a stream is open, and `look` is what makes it see whether it has to end."""
        self._open.add(look)
        try:
            yield
        finally:
            self._open.discard(look)

    def look(self) -> None:
        """Every open stream looks now, and not at its own pace: the server stops, or a token was revoked."""
        for look in tuple(self._open):
            look()

    def shared(self, *key: object) -> Shared:
        """What those share who watch the same thing in the same way; alive as long as one of them is."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = Shared()
        return found

    @asynccontextmanager
    async def turn(self, owner: str, conversation: str) -> AsyncGenerator[None]:
        """One request to a conversation at a time: the same prompt twice at once must find itself."""
        key = (owner, conversation)
        lock = self._turns.get(key)
        if lock is None:
            lock = self._turns[key] = anyio.Lock()
        async with lock:
            yield


MOST = 10_000
"""Answers that are known; who comes back to an older one begins a new conversation, and loses nothing by it."""

_PAGE = 500


class Place(NamedTuple):
    conversation: str
    message: str


class Given:
    """By whose they are and by their digest. One of each server."""

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], Place] = OrderedDict()
        self._earlier: dict[str, dict[str, list[str]]] = {}
        """Of an owner, the runs that were there before this server looked: by what was sent, newest first."""
        self._looking = anyio.Lock()

    def remember(self, owner: str, digest: str, place: Place) -> None:
        self._places[owner, digest] = place
        self._places.move_to_end((owner, digest))
        if len(self._places) > MOST:
            self._places.popitem(last=False)

    async def find(self, store: OwnerStore, owner: str, digest: str, before: str) -> Place | None:
        """Where the answer with that digest, to what has the digest `before`, stands; None when nobody knows it (any more)."""
        place = self._places.get((owner, digest))
        if place is not None:
            self._places.move_to_end((owner, digest))
            return place
        async with self._looking:
            if owner not in self._earlier:
                self._earlier[owner] = await _runs_of(store)
        for id in self._earlier[owner].get(before, ()):
            run = await store.records.run(id)
            if await _said(store, run, before) == digest:
                place = Place(run.conversation, run.message)
                self.remember(owner, digest, place)
                return place
        return None


async def _runs_of(store: OwnerStore) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    last: int | None = None
    looked = 0
    while looked < MOST and (page := await store.records.runs(statuses=frozenset({"finished"}), limit=_PAGE, before=last)):
        for run in page:
            served = Served.of(run.settings)
            if served is not None and served.digest:
                found.setdefault(served.digest, []).append(run.id)
        last = page[-1].no
        looked += len(page)
    return found


async def _said(store: OwnerStore, run: Run, before: str) -> str:
    """The digest of a run's answer as its caller had it."""
    served = Served.of(run.settings) or Served()
    message = await store.conversations.message(run.message)
    return answer_digest(before, pieces_of(message.parts, served.takes))
