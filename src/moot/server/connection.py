"""One connection of a caller: what uvicorn reads, with bounds on the head of a request."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, NoReturn, cast

import orjson
from fastapi import FastAPI
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from moot.server.state import Server

HEAD = 64 * 1024
"""Bytes that the line and the headers of a request may have."""

LINES = 128
"""Headers of a request."""


class Connection(HttpToolsProtocol):
    """Says 431 to a head without end and 408 to one that does not come: before it is whole nobody knows who is asking."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        server: Server = cast("FastAPI", config.app).state.server
        self._seconds = server.limits.head
        self._size = 0
        """Bytes that were read since the last of a body, or since a head was whole."""
        self._head = False
        """The head of a request is whole, its body is still to come."""
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._timer is None and not self._head:
            self._wait()
        self._size += len(data)
        super().data_received(data)
        if self._size > HEAD and not self._refused:
            self._refuse(431, "the head of the request is too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = False

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > LINES:  # what stands behind the chunks of a body comes here too
            self._stop()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._size = 0

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEAD:
            self._stop()
        self._head = True
        self._size = 0
        self._done_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = False
        self._size = 0

    def send_400_response(self, msg: str) -> None:
        """What is said to bytes that are no HTTP; what else was refused has been told already."""
        if not self._refused:
            self._refuse(400, "this is no HTTP that could be read")

    def _stop(self) -> NoReturn:
        self._refuse(431, "the head of the request is too large")
        raise ValueError("refused")  # ends the parser's work on what was read

    def _refuse(self, status: int, detail: str) -> None:
        self._refused = True
        self._done_waiting()
        code = {400: "bad_request", 408: "timeout", 431: "headers_too_large"}[status]
        phrase = HTTPStatus(status).phrase
        body = orjson.dumps(
            {"type": f"urn:moot:problem:{code}", "title": phrase, "status": status, "detail": detail, "code": code, "fix": ""}
        )
        head = (
            f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
            "x-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        cycle = self._cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(head.encode() + body)
        self.transport.close()

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        return cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request

    def _wait(self) -> None:
        if (cycle := self._cycle) is None or cycle.response_complete:
            self._timer = self.loop.call_later(self._seconds, self._waited)

    def _waited(self) -> None:
        self._timer = None
        if self._size:
            self._refuse(408, f"the head of the request did not come within {self._seconds:g} seconds")
        else:
            self.transport.close()

    def _done_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
