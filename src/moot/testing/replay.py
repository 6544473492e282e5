"""A model endpoint that replays recorded bytes, split and paused as configured.

    async with ReplayServer(["answer.sse"], sizes=[1, 1, 500], pause=0.01) as server:
        settings = server.provider("mine", dialect="anthropic")

A recording is the decoded body of one response, like the joined raw bytes in the log. Recordings are sent in order, one per request, and
start again from the first if `repeat` is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from aiohttp import web

from moot.testing._server import Recorded, Server
from moot.testing.script import Reply


class ReplayServer(Server):
    """A server that answers every POST with the next recording."""

    models = ("replayed",)

    def __init__(
        self,
        recordings: Sequence[bytes | str | Path],
        *,
        sizes: Sequence[int] = (),
        pause: float = 0.0,
        repeat: bool = False,
        content_type: str = "text/event-stream",
        port: int = 0,
    ) -> None:
        """`sizes` are the sizes of the writes, each at least 1. They are used in turn.

        If empty, the body is sent in one write. Raise OSError if a file does not exist.
        """
        super().__init__(port=port)
        if any(size < 1 for size in sizes):
            raise ValueError(f"Sizes must be at least 1, not {min(sizes)}.")
        self._bodies = [one if isinstance(one, bytes) else Path(one).read_bytes() for one in recordings]
        self._sizes = tuple(sizes)
        self._pause = pause
        self._repeat = repeat
        self._content_type = content_type
        self._next = 0

    async def respond(self, recorded: Recorded, request: web.Request) -> web.StreamResponse:
        if self._next >= len(self._bodies) and not (self._repeat and self._bodies):
            return self.refuse(recorded, Reply(status=400, error=f"all {len(self._bodies)} recordings have been sent"))
        body = self._bodies[self._next % len(self._bodies)]
        self._next += 1
        return await self.send(recorded, request, self._writes(body), {"Content-Type": self._content_type})

    async def _writes(self, body: bytes) -> AsyncIterator[bytes]:
        for number, data in enumerate(split(body, self._sizes)):
            if number and self._pause:
                await asyncio.sleep(self._pause)
            yield data


def split(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Split the body into pieces of these sizes, used in turn, or a single piece if there are none."""
    if not sizes:
        return [body] if body else []
    pieces: list[bytes] = []
    start = 0
    while start < len(body):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(body[start : start + size])
        start += size
    return pieces
