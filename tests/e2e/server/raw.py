"""Raw HTTP requests that no client library would send, and their responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

LONG = 4.0
"""Maximum seconds for a response on a busy machine."""


@dataclass(frozen=True)
class Answer:
    """A response; status 0 if the server closed the connection without sending one."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send data; ignore a connection that the server has closed."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            pass

    async def answer(self, *, bare: bool = False) -> Answer:
        """Return the next response; without a length, read until the end. `bare` is for responses to HEAD."""
        async with asyncio.timeout(LONG):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return Answer(0, {}, b"")
            line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rest)}
            if bare or line.split(" ")[1] == "204":
                body = b""
            elif "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"]))
            elif headers.get("transfer-encoding") == "chunked":
                body = b""
            else:
                body = await self.reader.read()
            return Answer(int(line.split(" ")[1]), headers, body)

    async def closed(self) -> bool:
        """Return True if the server closes the connection."""
        try:
            async with asyncio.timeout(LONG):
                while await self.reader.read(65536):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True


@asynccontextmanager
async def wire(url: str) -> AsyncGenerator[Wire]:
    """Connect to a server's port."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def asked(url: str, data: bytes) -> Answer:
    """Send these bytes on a new connection and return the response."""
    async with wire(url) as connection:
        await connection.send(data)
        return await connection.answer(bare=data.startswith(b"HEAD "))


def request(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    """Return a request with exactly these header lines; a length is added only with a body."""
    lines = [f"{method} {target} HTTP/1.1", *headers, *([f"content-length: {len(body)}"] if body else [])]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body
