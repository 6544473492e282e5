"""The lower bound for comparisons: an ASGI program that forwards a provider's stream and parses only its HTTP chunks.

GET returns the CPU nanoseconds that this process has used.

    python benchmarks/relay.py PORT UPSTREAM_PORT
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

UPSTREAM = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Source(asyncio.Protocol):
    """One request to the provider. Received bytes of the body are buffered in `ready`."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.ready: list[bytes] = []
        self.ended = False
        self.head = b""
        self.begun = False
        self.news = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if not self.begun:
            self.head += data
            _, found, data = self.head.partition(b"\r\n\r\n")
            self.begun = bool(found)
        if data:
            self.ready.append(data)
            self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self.news.set()


class Unchunk:
    """Decoder of a chunked body."""

    def __init__(self) -> None:
        self.rest = b""
        self.ended = False

    def feed(self, data: bytes) -> bytes:
        data, out, at = self.rest + data, [], 0
        while (line := data.find(b"\r\n", at)) >= 0:
            size = int(data[at:line], 16)
            if len(data) < line + size + 4:
                break
            out.append(data[line + 2 : line + 2 + size])
            at = line + size + 4
            self.ended = self.ended or size == 0
        self.rest = data[at:]
        return b"".join(out)


async def app(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    if scope["method"] == "GET":
        spent = str(time.process_time_ns()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(spent)).encode())]})
        await send({"type": "http.response.body", "body": spent})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: upstream\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    _, source = await asyncio.get_running_loop().create_connection(lambda: Source(request), "127.0.0.1", UPSTREAM)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    frames = Unchunk()
    while not frames.ended and not (source.ended and not source.ready):
        await source.news.wait()
        source.news.clear()
        data = frames.feed(b"".join(source.ready))
        source.ready.clear()
        if data:
            await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    source.transport.close()


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
