"""Responses that stream events. All new events are sent in one write, and keep-alive comments are sent while there are none.

A slow client never blocks a run. Its queue of new events is bounded: when it overflows, it is dropped, and the client gets the missed
events from the store, page by page. A client that accepts no data for `StreamTiming.stall_timeout` seconds receives the position to
resume from and is disconnected.
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

HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-accel-buffering": "no",
}
"""Headers of every stream."""

CHUNKS: Mapping[str, str] = {**HEADERS, "x-vercel-ai-ui-message-stream": "v1"}
"""Headers of a stream of chunks."""

log = logging.getLogger("moot.server")


class StreamWriter(Protocol):
    """Encoder of a conversation's events for one client."""

    ended: bool
    """True when the stream is complete; `[DONE]` is sent after the last data."""
    last: str
    """Id of the last frame; empty if no frame had one."""

    async def write(self, events: Sequence[Event]) -> bytes:
        """Encode these events. Return empty bytes if they are not part of the client's stream."""
        ...

    async def check(self) -> bytes:
        """Update `ended`. Called while there are no new events. Return the last data if the stream has ended."""
        ...


class Stream(Response):
    """A stream of server-sent events. It ends when the client disconnects, and never stops a run."""

    def __init__(self, server: Server, caller: Caller, headers: Mapping[str, str]) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(headers)
        self._server = server
        self._caller = caller
        self._timing = server.streams.timing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._server.metrics.streams.inc()
        try:
            with self._server.streams.opened(self._must_end):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._until_disconnected, receive, group.cancel_scope)
                    await self._stream(send, group.cancel_scope)
                    group.cancel_scope.cancel()
        finally:
            self._server.metrics.streams.dec()

    async def _stream(self, send: Send, scope: anyio.CancelScope) -> None:
        """Send the stream. Cancel `scope` to abort it."""
        raise NotImplementedError

    def _must_end(self) -> None:
        """Check whether the stream must end. Called when the server stops or a token has been revoked."""
        raise NotImplementedError

    async def _until_disconnected(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()


class EventStream(Stream):
    """A stream of a conversation's events after `after`, until the writer ends it."""

    def __init__(
        self,
        server: Server,
        caller: Caller,
        conversation: str,
        after: int,
        writer: StreamWriter,
        *,
        first: bytes = b"",
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        """Create the stream; `first` is sent before anything else."""
        super().__init__(server, caller, headers)
        self._conversation = conversation
        self._after = after
        self._writer = writer
        self._first = first
        self._waiter: asyncio.Future[None] | None = None
        self._silent = False
        self._closing = ""
        self._sent_at = 0.0
        self._sending = False

    async def _stream(self, send: Send, scope: anyio.CancelScope) -> None:
        loop = asyncio.get_running_loop()
        watch = self._server.engine.runtime.hub.reader(self._conversation, self._wake, after=self._after, patient=True)
        self._sent_at = loop.time()
        self._timer = loop.call_later(self._timing.check_interval, self._check, loop, watch, scope)
        try:
            await self._flow(watch, send)
        finally:
            self._timer.cancel()
            watch.close()

    async def _flow(self, watch: Watch, send: Send) -> None:
        writer = self._writer
        rest = b""
        try:
            if self._first:
                await self._send(send, self._first)
            while not self._closing and not writer.ended:
                events = await watch.take()
                if events:
                    data = await writer.write(events)
                    if data and not writer.ended:
                        await self._send(send, data)
                    elif data:
                        await self._end(send, data)
                        return
                else:
                    rest = await self._wait(send)
                    if writer.ended:  # found while there was nothing new, but the last events may have been stored since
                        rest = await self._remaining(watch) or rest
                        break
        except MootError as error:
            log.error("a stream of the conversation %s failed: %s", self._conversation, error)
            self._closing = error.message
        await self._end(send, rest)

    async def _remaining(self, watch: Watch) -> bytes:
        """Return all events that are stored, encoded."""
        data = b""
        watch.touch()
        while events := await watch.take():
            data += await self._writer.write(events)
        return data

    async def _wait(self, send: Send) -> bytes:
        """Wait for new events, or send a keep-alive when it is due. Return the last data if the stream has ended."""
        if self._closing:  # closed while the store was read: nothing will wake the waiter
            return b""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter
        if self._silent:
            self._silent = False
            rest = await self._writer.check()
            if self._writer.ended:
                return rest
            await self._send(send, KEEP_ALIVE)
        return b""

    async def _send(self, send: Send, data: bytes) -> None:
        self._sending = True
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self._sending = False
        self._sent_at = asyncio.get_running_loop().time()

    async def _end(self, send: Send, data: bytes) -> None:
        """Send the last data. Add `[DONE]` if the stream is complete, otherwise a comment with the position to resume from."""
        if self._closing and not self._writer.ended:
            where = f"; resume with Last-Event-ID: {self._writer.last}" if self._writer.last else ""
            data += comment(f"cut: {self._closing}{where}")
        else:
            data += DONE
        self._sending = True
        await send({"type": "http.response.body", "body": data, "more_body": False})

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check(self, loop: asyncio.AbstractEventLoop, watch: Watch, scope: anyio.CancelScope) -> None:
        timing, idle = self._timing, loop.time() - self._sent_at
        self._must_end()
        if self._sending and idle >= timing.stall_timeout + timing.close_timeout:
            scope.cancel()
        elif self._sending and idle >= timing.stall_timeout:
            if not self._closing:
                self._server.metrics.cut.inc()
            watch.close()
            self._close("the client did not read for too long")
        elif not self._sending and idle > timing.heartbeat - timing.check_interval:
            self._silent = True
            self._wake()
        self._timer = loop.call_later(timing.check_interval, self._check, loop, watch, scope)

    def _must_end(self) -> None:
        if self._caller.revoked.is_set():
            self._close("the token was revoked")
        if self._server.stopping.is_set():
            self._close("the server is stopping")

    def _close(self, why: str) -> None:
        self._closing = self._closing or why
        self._wake()
