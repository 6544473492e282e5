"""A shared clock for delayed callbacks: everything deferred runs together at the next tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["TICK", "Ticks"]

TICK = 0.03
"""Seconds between two ticks, and the longest delay."""


class Ticks:
    """A scheduler of callbacks at the ticks of the event loop's clock. No timer runs while nothing is deferred.

    Running everything at the same moment is cheap: a hundred streams wake the loop once, and watchers of one conversation find the same
    events, which are then encoded once.
    """

    def __init__(self, tick: float = TICK) -> None:
        self._tick = tick
        self._waiting: list[Callable[[], None]] = []

    def soon(self, call: Callable[[], None]) -> None:
        """Call it at the next tick. It must not raise."""
        if not self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_at((loop.time() // self._tick + 1) * self._tick, self._ring)
        self._waiting.append(call)

    def _ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()
