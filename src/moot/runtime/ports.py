"""The environment of a leg: blobs of the conversation's owner, time and randomness."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from moot.runtime.runtime import Runtime
from moot.types.blob import Blobs


@dataclass(frozen=True, slots=True)
class LegPorts:
    """The `Ports` of a leg. Blobs are limited to those that the conversation's owner may read."""

    runtime: Runtime
    blobs: Blobs

    def now(self) -> int:
        """Return the wall time in µs."""
        return self.runtime.now()

    def jitter(self) -> float:
        """Return a random number from 0 to 1."""
        return self.runtime.jitter()

    async def sleep(self, seconds: float) -> None:
        """Sleep; cancellable."""
        await self.runtime.sleep(seconds)

    def slot(self, provider: str) -> AbstractAsyncContextManager[object]:
        """Implement `Ports.slot`."""
        return self.runtime.slot(provider)
