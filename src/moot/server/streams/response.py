"""The response that streams: one write for all that has come, heartbeats in silence, and an end for whoever does not read.

A reader's pace is the socket's: while it takes nothing, its mailbox in the hub overflows and is dropped, and what it missed is read from
the store in pages once it goes on, so a slow client costs a page of memory and never a run. One that has taken nothing for `SLOW` seconds
is told where to go on, and cut.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moot.errors import MootError
from moot.runtime.hub import Watch
from moot.server.credentials import Caller
from moot.server.state import Server
from moot.server.streams.frames import DONE, KEEP_ALIVE, comment
from moot.types.event import Event

__all__ = ["CHUNKS", "HEADERS", "EventStream", "Scribe", "until_gone"]

HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-accel-buffering": "no",
}
"""Of every stream."""

CHUNKS: Mapping[str, str] = {**HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""Of a stream of chunks."""

log = logging.getLogger("moot.server")


class Scribe(Protocol):
    """Makes the frames of what one client sees of a conversation."""

    ended: bool
    """Nothing more comes: `[DONE]` follows what was written."""
    last: str
    """The id of the last frame that was written; empty = none had one."""

    async def write(self, events: Sequence[Event]) -> bytes:
        """The frames of these events; empty when they say nothing to this client."""
        ...

    async def look(self) -> None:
        """Called in silence: says in `ended` whether anything can still come."""
        ...


class EventStream(Response):
    """Streams a conversation's events behind `after` until the scribe says that they end, or the client is gone. It stops no run."""

    def __init__(
        self,
        server: Server,
        caller: Caller,
        conversation: str,
        after: int,
        scribe: Scribe,
        *,
        first: bytes = b"",
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        """`first` goes out before anything else."""
        self.status_code = 200
        self.background = None
        self.init_headers(headers)
        self._server = server
        self._caller = caller
        self._pace = server.streams.pace
        self._conversation = conversation
        self._after = after
        self._scribe = scribe
        self._first = first
        self._waiter: asyncio.Future[None] | None = None
        self._silent = False
        self._closing = ""
        self._sent_at = 0.0
        self._sending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        watch = self._server.engine.runtime.hub.reader(self._conversation, self._ring, after=self._after, patient=True)
        self._sent_at = loop.time()
        self._server.metrics.streams.inc()
        try:
            with self._server.streams.opened(self._must_end):
                async with anyio.create_task_group() as group:
                    group.start_soon(until_gone, receive, group.cancel_scope)
                    self._timer = loop.call_later(self._pace.look, self._look, loop, watch, group.cancel_scope)
                    await self._flow(watch, send)
                    group.cancel_scope.cancel()
        finally:
            self._timer.cancel()
            watch.close()
            self._server.metrics.streams.dec()

    async def _flow(self, watch: Watch, send: Send) -> None:
        scribe = self._scribe
        try:
            if self._first:
                await self._send(send, self._first)
            while not self._closing and not scribe.ended:
                taken = await watch.take()
                if taken:
                    data = await scribe.write(taken)
                    if data and not scribe.ended:
                        await self._send(send, data)
                    elif data:
                        await self._end(send, data)
                        return
                else:
                    await self._wait(send)
        except MootError as error:
            log.error("a stream of the conversation %s broke off: %s", self._conversation, error)
            self._closing = error.message
        await self._end(send, b"")

    async def _wait(self, send: Send) -> None:
        """Until there is something to take, or to say in the silence."""
        if self._closing:  # it was said while the store was read: nobody rings again
            return
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        if self._silent:
            self._silent = False
            await self._scribe.look()
            if not self._scribe.ended:
                await self._send(send, KEEP_ALIVE)

    async def _send(self, send: Send, data: bytes) -> None:
        self._sending = True
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self._sending = False
        self._sent_at = asyncio.get_running_loop().time()

    async def _end(self, send: Send, data: bytes) -> None:
        """The last write: with `[DONE]` when the scribe has come to its end, else with a word on where to go on."""
        if self._closing and not self._scribe.ended:
            where = f"; go on with Last-Event-ID: {self._scribe.last}" if self._scribe.last else ""
            data += comment(f"cut: {self._closing}{where}")
        else:
            data += DONE
        self._sending = True
        await send({"type": "http.response.body", "body": data, "more_body": False})

    def _ring(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self, loop: asyncio.AbstractEventLoop, watch: Watch, scope: anyio.CancelScope) -> None:
        pace, still = self._pace, loop.time() - self._sent_at
        self._must_end()
        if self._sending and still >= pace.slow + pace.stuck:
            scope.cancel()
        elif self._sending and still >= pace.slow:
            if not self._closing:
                self._server.metrics.cut.inc()
            watch.close()
            self._close("nothing was read for too long")
        elif not self._sending and still > pace.beat - pace.look:
            self._silent = True
            self._ring()
        self._timer = loop.call_later(pace.look, self._look, loop, watch, scope)

    def _must_end(self) -> None:
        if self._caller.revoked.is_set():
            self._close("the token was revoked")
        if self._server.stopping.is_set():
            self._close("the server stops")

    def _close(self, why: str) -> None:
        self._closing = self._closing or why
        self._ring()


async def until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancels the scope once the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
