"""Encoders for the two kinds of streams: the chunks of one message, or all events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from moot.convert.serialization import event_json
from moot.features.remote import encode
from moot.server.caches import Encoded, Shared
from moot.server.streams.frames import ChunkFrames, Position, Step, frame
from moot.server.streams.positions import is_end, is_parked, requests_in
from moot.server.streams.view import Blobs, slim
from moot.types.blob import Blobs as Store
from moot.types.canonical import Json
from moot.types.event import Event


async def store_blobs(store: Store, blobs: Blobs) -> None:
    """Store the full outputs that links refer to. Raise StoreError if they can't be stored."""
    for blob in blobs:
        if blob.blob is not None:
            await store.put(blob.blob, blob.media_type)


async def _encoded(shared: Shared, key: tuple[object, ...], store: Store, encode: Callable[[Blobs], tuple[bytes, Step]]) -> Encoded:
    encoded = shared.get(key)
    if encoded is None:
        blobs: Blobs = []
        encoded = Encoded(*encode(blobs))
        await store_blobs(store, blobs)
        shared.put(key, encoded)
    return encoded


class MessageWriter:
    """Encoder of one run's message as chunks. The stream ends when the run ends or starts to wait for an answer."""

    def __init__(
        self,
        run: str,
        after: Position,
        frames: ChunkFrames,
        *,
        store: Store,
        shared: Shared,
        open_approvals: Callable[[], Awaitable[set[str]]],
        is_over: Callable[[], Awaitable[bool]],
    ) -> None:
        """Create the writer. `is_over` returns True if no process is working on the run.

        `frames` is the encoder of the chunks that the client already has.
        """
        self.ended = False
        self.last = "" if after[0] == 0 else f"{after[0]}.{after[1]}"
        self._run = run
        self._after = after
        self._frames = frames
        self._store = store
        self._open_approvals = open_approvals
        self._is_over = is_over
        self._shared = shared

    async def write(self, events: Sequence[Event]) -> bytes:
        own = [event for event in events if event.run == self._run]
        if not own:
            return b""
        own, is_left = await self._leg(own)
        last = own[-1]
        key = (own[0].seq, last.seq, self._after if own[0].seq <= self._after[0] else 0, self._frames.step)

        def encode(blobs: Blobs) -> tuple[bytes, Step]:
            return self._frames.write(own, self._after, blobs), self._frames.step

        data, self._frames.step = await _encoded(self._shared, key, self._store, encode)
        if last.chunks:
            self.last = f"{last.seq}.{len(last.chunks) - 1}"
        self.ended = is_left or is_end(last)
        return data + self._frames.leave() if is_left else data

    async def _leg(self, events: Sequence[Event]) -> tuple[Sequence[Event], bool]:
        """Return the events up to the first wait for an answer that is still missing, and True if there is such a wait.

        Events after it, which an outside agent may produce while it waits, belong to the stream of the request with the answer.
        """
        for index, event in enumerate(events):
            if is_parked(event) and (await self._open_approvals()).difference(*map(requests_in, events[index + 1 :])):
                return events[: index + 1], True
        return events, False

    async def check(self) -> bytes:
        self.ended = await self._is_over()
        return self._frames.leave() if self.ended and await self._open_approvals() else b""


class EventWriter:
    """Encoder of all events of a conversation, or of one run."""

    def __init__(self, store: Store, shared: Shared, *, run: str | None = None, raw: bool = False, exact: bool = False) -> None:
        """Create the writer. If `exact` is True, events are sent unchanged, for `moot --url`."""
        self.ended = False
        self.last = ""
        self._store = store
        self._shared = shared
        self._run = run
        self._raw = raw
        self._exact = exact

    async def write(self, events: Sequence[Event]) -> bytes:
        own = events if self._run is None else [event for event in events if event.run == self._run]
        if not own:
            return b""
        key = (own[0].seq, own[-1].seq, self._raw)
        data, _ = await _encoded(
            self._shared, key, self._store, lambda blobs: (b"".join([self._frame(event, blobs) for event in own]), "closed")
        )
        self.last = str(own[-1].seq)
        self.ended = self._run is not None and is_end(own[-1])
        return data

    async def check(self) -> bytes:
        """Do nothing: a conversation's stream never ends, and a run's stream ends with the run's last event."""
        return b""

    def _frame(self, event: Event, blobs: Blobs) -> bytes:
        if self._exact:
            return b"id: %d\ndata: %s\n\n" % (event.seq, encode(event if self._raw else event._replace(raw=None)))
        value = event_json(event, raw=self._raw)
        value["chunks"] = list[Json]([slim(chunk, blobs) for chunk in event.chunks])
        return frame(value, str(event.seq))
