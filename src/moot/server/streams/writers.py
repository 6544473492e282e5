"""Writers of the two kinds of streams: one message as chunks, or every event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from moot.convert.serialization import event_json
from moot.convert.unfold import Version
from moot.server.caches import Shared
from moot.server.streams.frames import ChunkFrames, Position, frame
from moot.server.streams.positions import is_end, is_parked
from moot.server.streams.view import Blobs, slim
from moot.types.canonical import Json
from moot.types.event import Event
from moot.types.store import Blobs as Store


async def store_blobs(store: Store, blobs: Blobs) -> None:
    """Store the blobs that links refer to. Raise StoreError if they can't be stored."""
    for blob in blobs:
        if blob.blob is not None:
            await store.put(blob.blob, blob.media_type)


async def _encoded(shared: Shared, key: tuple[object, ...], store: Store, encode: Callable[[Blobs], bytes]) -> bytes:
    data = shared.get(key)
    if data is None:
        blobs: Blobs = []
        data = encode(blobs)
        await store_blobs(store, blobs)
        shared.put(key, data)
    return data


class MessageWriter:
    """A writer of one run's message until the run ends or waits."""

    def __init__(
        self,
        run: str,
        after: Position,
        version: Version,
        *,
        store: Store,
        shared: Shared,
        has_open_approvals: Callable[[], Awaitable[bool]],
        is_over: Callable[[], Awaitable[bool]],
    ) -> None:
        """Create the writer; `is_over` tells whether no process works on the run."""
        self.ended = False
        self.last = "" if after[0] == 0 else f"{after[0]}.{after[1]}"
        self._run = run
        self._after = after
        self._frames = ChunkFrames(version)
        self._store = store
        self._has_open_approvals = has_open_approvals
        self._is_over = is_over
        self._shared = shared

    async def write(self, events: Sequence[Event]) -> bytes:
        own = [event for event in events if event.run == self._run]
        if not own:
            return b""
        last = own[-1]
        key = (own[0].seq, last.seq, self._after if own[0].seq <= self._after[0] else 0)
        data = await _encoded(self._shared, key, self._store, lambda blobs: self._frames.write(own, self._after, blobs))
        if last.chunks:
            self.last = f"{last.seq}.{len(last.chunks) - 1}"
        self.ended = is_end(last) or (is_parked(last) and await self._has_open_approvals())
        return data

    async def check(self) -> None:
        self.ended = await self._is_over()


class EventWriter:
    """A writer of all events, without gaps, of a conversation or of one run."""

    def __init__(self, store: Store, shared: Shared, *, run: str | None = None, raw: bool = False) -> None:
        self.ended = False
        self.last = ""
        self._store = store
        self._shared = shared
        self._run = run
        self._raw = raw

    async def write(self, events: Sequence[Event]) -> bytes:
        own = events if self._run is None else [event for event in events if event.run == self._run]
        if not own:
            return b""
        key = (own[0].seq, own[-1].seq, self._raw)
        data = await _encoded(self._shared, key, self._store, lambda blobs: b"".join([self._frame(event, blobs) for event in own]))
        self.last = str(own[-1].seq)
        self.ended = self._run is not None and is_end(own[-1])
        return data

    async def check(self) -> None:
        """Do nothing: a conversation never ends, and a run ends with its last event."""

    def _frame(self, event: Event, blobs: Blobs) -> bytes:
        value = event_json(event, raw=self._raw)
        value["chunks"] = list[Json]([slim(chunk, blobs) for chunk in event.chunks])
        return frame(value, str(event.seq))
