"""What the streams of one server have in common: frames that were written once, and the order of requests to one conversation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

import anyio

__all__ = ["Pace", "Shared", "Streams"]

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
