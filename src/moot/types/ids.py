"""Ids that we make: UUIDv7 text, sorted by time within a process (RFC 9562 section 5.7); and those derived from what they name."""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from; tests bring their own."""

    def now(self) -> int:
        """Wall time, integer microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()


class Uuid7:
    """Makes ids that sort in the order they were made, also when the clock stands still or steps back."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._last = 0
        self._random: list[int] = []

    def __call__(self) -> str:
        with self._lock:
            # 48 bits of milliseconds and 12 of sub-millisecond position: one counter, only ever raised
            ticks = (self._clock.now() << 12) // 1000
            self._last = ticks = max(ticks, self._last + 1)
            if not self._random:  # the kernel is asked for many at a time
                self._random = list(struct.unpack("=64Q", os.urandom(512)))
            low = self._random.pop() & (1 << 62) - 1 | 1 << 63
        high = (ticks >> 12 & (1 << 48) - 1) << 16 | 0x7000 | ticks & 0xFFF
        text = f"{high:016x}{low:016x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


new_id = Uuid7()


def exchange_id(run: str, step: int, attempt: int, purpose: str = "answer") -> str:
    """The id of one try of one step's model call; the same for the same try, so a resumed run finds it again."""
    return f"{run}:{step}.{attempt}" if purpose == "answer" else f"{run}:{purpose}:{step}.{attempt}"


def llm_key(step: int, attempt: int) -> str:
    """The journal key of a step's model call."""
    return f"llm:{step}.{attempt}"


def tool_key(step: int, index: int) -> str:
    """The journal key of the index-th tool call of a step; `once` adds `.<attempt>`."""
    return f"tool:{step}.{index}"
