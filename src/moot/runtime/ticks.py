"""One clock for all who may wait a moment: what is put off is done at the next tick, all of it together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["TICK", "Ticks"]

TICK = 0.03
"""Seconds between two ticks, and so the longest that anything is put off."""


class Ticks:
    """Calls back at the ticks of the loop's clock; no timer runs while nobody waits.

    That all wait for the same moment is what makes it cheap: a hundred streams wake the loop once, and watchers of one conversation
    find the same events, so that these are written as frames once.
    """

    def __init__(self, tick: float = TICK) -> None:
        self._tick = tick
        self._waiting: list[Callable[[], None]] = []

    def soon(self, call: Callable[[], None]) -> None:
        """Calls it at the next tick; it must not raise."""
        if not self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_at((loop.time() // self._tick + 1) * self._tick, self._ring)
        self._waiting.append(call)

    def _ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()
