"""A model endpoint with faults: a good answer, corrupted in a way chosen by a seed.

    async with ChaosServer(Reply(text="Hello there."), seed=7) as server:
        ...
        print(server.faults)                # one per request, e.g. ["cut at byte 112", "none"]

The same seed corrupts the same requests in the same way. `only` restricts the kinds of faults; `share` is the fraction of corrupted
requests, so that a client that retries gets the good answer eventually. A failing run can be repeated with its seed.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal, get_args

from aiohttp import web

from moot.testing._frames import frames
from moot.testing._server import Recorded, Server
from moot.testing.script import Reply

__all__ = ["ChaosServer", "Fault"]

Fault = Literal[
    "cut",
    "end",
    "delay",
    "duplicate",
    "disorder",
    "html",
    "empty",
    "half",
    "billion",
    "status",
    "retry-after",
    "silence",
    "garbage",
    "split",
]
"""cut: the connection breaks at a byte · end: the body ends at a byte · delay: pauses · duplicate: a frame is sent twice · disorder: two
frames are swapped · html: a page with status 200 · empty: no body with status 200 · half: half an event · billion: a line of a billion
bytes · status: 500, 502, 503 or 529 · retry-after: 429 with 10^9 seconds · silence: nothing more, but the connection stays open ·
garbage: invalid UTF-8 between frames · split: every byte in its own write."""

BILLION = 1_000_000_000
_BLOCK = b"x" * 262_144


class ChaosServer(Server):
    """A server that answers every POST with the reply, corrupted or not."""

    models = ("chaos",)

    def __init__(
        self, reply: Reply, *, seed: int, share: float = 1.0, only: Sequence[Fault] = (), longest: float = 0.02, port: int = 0
    ) -> None:
        """`share` is the fraction of corrupted requests, 0 to 1. Pauses last at most `longest` seconds, except for `silence`, which lasts
        until the client disconnects."""
        super().__init__(port=port)
        self.faults: list[str] = []
        """The fault of each request."""
        self._reply = reply
        self._random = random.Random(seed)
        self._share = share
        self._kinds: tuple[Fault, ...] = tuple(only) or get_args(Fault)
        self._longest = longest
        self._ids = (str(number) for number in itertools.count(1))

    async def respond(self, recorded: Recorded, request: web.Request) -> web.StreamResponse:
        made = frames(self._reply, recorded.dialect, recorded.model, self._ids)
        fault = self._random.choice(self._kinds) if self._random.random() < self._share else None
        if fault is None:
            return await self._answer(recorded, request, "none", _plain(made))
        if fault in ("status", "retry-after"):
            return self._refuse(recorded, fault)
        name, writes = self._spoil(fault, made, recorded, request)
        return await self._answer(recorded, request, name, writes, "text/html" if fault == "html" else "text/event-stream")

    async def _answer(
        self, recorded: Recorded, request: web.Request, fault: str, writes: AsyncIterator[bytes], kind: str = "text/event-stream"
    ) -> web.StreamResponse:
        self.faults.append(fault)
        return await self.send(recorded, request, writes, {"Content-Type": kind})

    def _refuse(self, recorded: Recorded, fault: Fault) -> web.StreamResponse:
        status = 429 if fault == "retry-after" else self._random.choice((500, 502, 503, 529))
        self.faults.append(f"status {status}")
        return self.refuse(recorded, Reply(status=status, retry_after=BILLION if fault == "retry-after" else None))

    def _spoil(self, fault: Fault, made: list[bytes], recorded: Recorded, request: web.Request) -> tuple[str, AsyncIterator[bytes]]:
        body, at = b"".join(made), self._random.randrange(len(made))
        byte = self._random.randrange(1, len(body))
        bodies: dict[str, Callable[[], tuple[str, AsyncIterator[bytes]]]] = {
            "cut": lambda: (f"cut at byte {byte}", _broken(body[:byte])),
            "end": lambda: (f"end at byte {byte}", _plain([body[:byte]])),
            "delay": lambda: ("delay", self._paused(made)),
            "duplicate": lambda: (f"duplicate of frame {at}", _plain([*made[: at + 1], *made[at:]])),
            "disorder": lambda: (f"disorder at frame {at}", _plain(_swapped(made, at))),
            "html": lambda: ("html", _plain([b"<!doctype html>\n\n<title>Sign in</title>\n"])),
            "empty": lambda: ("empty", _plain([])),
            "half": lambda: (f"half of frame {at}", _plain([*made[:at], made[at][: len(made[at]) // 2]])),
            "billion": lambda: ("billion", _billion()),
            "silence": lambda: (f"silence after frame {at}", self._silent(made[:at], recorded, request)),
            "garbage": lambda: (f"garbage before frame {at}", _plain([*made[:at], b"data: \xff\xfe\x00{\n\n", *made[at:]])),
            "split": lambda: ("split", _plain([body[start : start + 1] for start in range(len(body))])),
        }
        return bodies[fault]()

    async def _paused(self, made: list[bytes]) -> AsyncIterator[bytes]:
        for data in made:
            await asyncio.sleep(self._random.random() * self._longest)
            yield data

    async def _silent(self, made: list[bytes], recorded: Recorded, request: web.Request) -> AsyncIterator[bytes]:
        for data in made:
            yield data
        await self.hang(recorded, request)


async def _plain(made: list[bytes]) -> AsyncIterator[bytes]:
    for data in made:
        yield data


async def _broken(body: bytes) -> AsyncIterator[bytes]:
    yield body
    raise BrokenPipeError


async def _billion() -> AsyncIterator[bytes]:
    """Yield an endless line in blocks, so that only one block is in memory."""
    yield b'data: {"choices": [{"delta": {"content": "'
    for _ in range(BILLION // len(_BLOCK)):
        yield _BLOCK


def _swapped(made: list[bytes], at: int) -> list[bytes]:
    other = at + 1 if at + 1 < len(made) else at - 1
    swapped = list(made)
    swapped[at], swapped[other] = swapped[other], swapped[at]
    return swapped
