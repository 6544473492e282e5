"""What one leg works with beside the log: the bytes of its conversation's owner, time and chance."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from moot.runtime.runtime import Runtime
from moot.types.blob import Blobs


@dataclass(frozen=True, slots=True)
class LegPorts:
    """Implements Ports. A hash that is named in a conversation reaches only what its owner may read."""

    runtime: Runtime
    blobs: Blobs

    def now(self) -> int:
        """Wall time, µs."""
        return self.runtime.now()

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        return self.runtime.jitter()

    async def sleep(self, seconds: float) -> None:
        """Waits; cancellable."""
        await self.runtime.sleep(seconds)

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """As `Ports.slot`."""
        return self.runtime.slot(provider)
