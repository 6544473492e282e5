"""The time limit of a leg. The time spent waiting for a person does not count."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import inf

import anyio

__all__ = ["Deadline"]


class Deadline:
    """The time limit of one leg, entered once. Waits may overlap."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None
        self._waits = 0
        self._left = inf

    @contextmanager
    def limit(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block after that many seconds of work; None = never."""
        with anyio.move_on_after(seconds) as self._scope:
            yield self._scope
        self._scope = None

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock during the block."""
        if self._scope is not None and not self._waits:
            self._left, self._scope.deadline = self._scope.deadline - anyio.current_time(), inf
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if self._scope is not None and not self._waits:
                self._scope.deadline = anyio.current_time() + self._left
