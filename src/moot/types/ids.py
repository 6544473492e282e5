"""Ids created by moot: UUIDv7 strings, sorted by time within a process (RFC 9562 section 5.7), and ids derived from what they identify."""

from __future__ import annotations

import os
import struct
import threading
import time
from hashlib import blake2b
from typing import Protocol

SHORTEST_PREFIX = 4
"""Minimum length of an abbreviated id."""


class Clock(Protocol):
    """A source of time; tests pass in their own."""

    def now(self) -> int:
        """Return wall time in integer microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes backwards."""
        ...


class SystemClock:
    """The system clock."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()


class Uuid7:
    """A generator of ids that sort in creation order, even if the clock stops or goes backwards."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._last = 0
        self._random: list[int] = []

    def __call__(self) -> str:
        with self._lock:
            # 48 bits of milliseconds and 12 bits of sub-millisecond position form one counter that only increases
            ticks = (self._clock.now() << 12) // 1000
            self._last = ticks = max(ticks, self._last + 1)
            if not self._random:  # fetch many from the kernel at once
                self._random = list(struct.unpack("=64Q", os.urandom(512)))
            low = self._random.pop() & (1 << 62) - 1 | 1 << 63
        high = (ticks >> 12 & (1 << 48) - 1) << 16 | 0x7000 | ticks & 0xFFF
        return _text(high, low)


new_id = Uuid7()


def derived_id(at: int, *names: str) -> str:
    """Return an id that has the form of `new_id` but depends only on a time (in ms) and on names."""
    hashed = blake2b(b"".join(name.encode() + b"\0" for name in names), digest_size=10).digest()
    high = (at & (1 << 48) - 1) << 16 | 0x7000 | int.from_bytes(hashed[:2]) & 0xFFF
    return _text(high, int.from_bytes(hashed[2:]) & (1 << 62) - 1 | 1 << 63)


def _text(high: int, low: int) -> str:
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def exchange_id(run: str, step: int, attempt: int, purpose: str = "answer") -> str:
    """Return the id of one attempt of a step's model call. It is deterministic, so a resumed run gets the same id."""
    return f"{run}:{step}.{attempt}" if purpose == "answer" else f"{run}:{purpose}:{step}.{attempt}"


def llm_key(step: int, attempt: int) -> str:
    """Return the journal key of a step's model call."""
    return f"llm:{step}.{attempt}"


def tool_key(step: int, index: int) -> str:
    """Return the journal key of the index-th tool call of a step; `RunContext.once` appends `.<attempt>`."""
    return f"tool:{step}.{index}"
