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
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Literal, get_args

from aiohttp import web

from moot.testing._frames import frames
from moot.testing._server import Recorded, Server
from moot.testing.script import Reply

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
        if fault in ("status", "retry-after"):
            status = 429 if fault == "retry-after" else self._random.choice((500, 502, 503, 529))
            self.faults.append(f"status {status}")
            return self.refuse(recorded, Reply(status=status, retry_after=BILLION if fault == "retry-after" else None))
        name, writes = self._spoil(fault, made) if fault is not None else ("none", made)
        self.faults.append(name)
        kind = "text/html" if fault == "html" else "text/event-stream"
        return await self.send(recorded, request, self._writes(writes, fault, recorded, request), {"Content-Type": kind})

    def _spoil(self, fault: Fault, made: list[bytes]) -> tuple[str, Iterable[bytes]]:
        """Return the fault's description, and the data to write."""
        body, at = b"".join(made), self._random.randrange(len(made))
        byte = self._random.randrange(1, len(body))
        first, other = sorted((at, at + 1 if at + 1 < len(made) else at - 1))
        # an endless line in blocks, so that only one block is in memory
        billion = itertools.chain([b'data: {"choices": [{"delta": {"content": "'], itertools.repeat(_BLOCK, BILLION // len(_BLOCK)))
        faults: dict[str, tuple[str, Iterable[bytes]]] = {
            "cut": (f"cut at byte {byte}", [body[:byte]]),
            "end": (f"end at byte {byte}", [body[:byte]]),
            "delay": ("delay", made),
            "duplicate": (f"duplicate of frame {at}", [*made[: at + 1], *made[at:]]),
            "disorder": (f"disorder at frame {at}", [*made[:first], *made[first : other + 1][::-1], *made[other + 1 :]]),
            "html": ("html", [b"<!doctype html>\n\n<title>Sign in</title>\n"]),
            "empty": ("empty", []),
            "half": (f"half of frame {at}", [*made[:at], made[at][: len(made[at]) // 2]]),
            "billion": ("billion", billion),
            "silence": (f"silence after frame {at}", made[:at]),
            "garbage": (f"garbage before frame {at}", [*made[:at], b"data: \xff\xfe\x00{\n\n", *made[at:]]),
            "split": ("split", [body[start : start + 1] for start in range(len(body))]),
        }
        return faults[fault]

    async def _writes(self, writes: Iterable[bytes], fault: Fault | None, recorded: Recorded, request: web.Request) -> AsyncIterator[bytes]:
        for data in writes:
            if fault == "delay":
                await asyncio.sleep(self._random.random() * self._longest)
            yield data
        if fault == "cut":
            raise BrokenPipeError
        if fault == "silence":
            await self.hang(recorded, request)
