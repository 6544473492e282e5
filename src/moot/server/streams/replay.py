"""Stream that replays a run with its original timing."""

from __future__ import annotations

from contextlib import aclosing

import anyio
from starlette.types import Send

from moot.features.replays.replay import timed_events
from moot.server.credentials import Caller
from moot.server.state import Server
from moot.server.streams.frames import DONE, KEEP_ALIVE, ChunkFrames, comment
from moot.server.streams.response import CHUNKS, Stream
from moot.server.streams.view import Blobs
from moot.server.streams.writers import store_blobs
from moot.types.run import Run


class ReplayStream(Stream):
    """Stream that replays a run's events from a sequence number on. It ends early if the client stops reading or the server stops."""

    def __init__(self, server: Server, caller: Caller, run: Run, frames: ChunkFrames, *, begin: int, speed: float) -> None:
        super().__init__(server, caller, CHUNKS)
        self._run = run
        self._frames = frames
        self._begin = begin
        self._speed = speed
        self._playing = anyio.CancelScope()

    async def _stream(self, send: Send, scope: anyio.CancelScope) -> None:
        with self._playing:
            await self._play(send)
        if self._playing.cancelled_caught:
            await send({"type": "http.response.body", "body": comment("cut: the server is stopping or the token was revoked")})

    async def _play(self, send: Send) -> None:
        async with aclosing(timed_events(self._caller.store.log, self._run, begin=self._begin, speed=self._speed)) as played:
            async for beat in played:
                if not await self._wait(send, beat.wait):
                    return
                blobs: Blobs = []
                data = self._frames.write([beat.event], (0, 0), blobs)
                await store_blobs(self._caller.store.blobs, blobs)
                if data and not await self._send(send, data):
                    return
        await send({"type": "http.response.body", "body": DONE, "more_body": False})

    async def _wait(self, send: Send, seconds: float) -> bool:
        """Wait, keeping the connection alive. Return False if the client has stopped reading."""
        while seconds > 0:
            stretch = min(seconds, self._timing.heartbeat)
            await anyio.sleep(stretch)
            seconds -= stretch
            if seconds > 0 and not await self._send(send, KEEP_ALIVE):
                return False
        return True

    def _must_end(self) -> None:
        if self._caller.revoked.is_set() or self._server.stopping.is_set():
            self._playing.cancel()

    async def _send(self, send: Send, data: bytes) -> bool:
        """Send data. Return False if the client accepts nothing for too long."""
        with anyio.move_on_after(self._timing.stall_timeout) as patience:
            await send({"type": "http.response.body", "body": data, "more_body": True})
        return not patience.cancelled_caught
