"""Idempotency keys: stored responses to requests, so that a repeated request is not executed twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Standing: TypeAlias = Literal["new", "open", "done", "other"]
"""State of a key: unused; claimed by a worker, which may have died; answered; used for a different request."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored response."""

    status: int
    """0 = answered, but the response was not stored: too large, a truncated stream, or it contained a secret."""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Claim:
    """The state of a key."""

    standing: Standing
    worker: str = ""
    """The worker that claimed it."""
    kept: Kept | None = None


class Idempotency(Protocol):
    """Stored responses by owner and key, kept for a day."""

    async def claim(self, owner: str, key: str, *, request: bytes, worker: str) -> Claim:
        """Claim a key for `worker` if it is `new`; `request` is a digest of the request."""
        ...

    async def keep(self, owner: str, key: str, kept: Kept) -> None:
        """Store the response."""
        ...

    async def release(self, owner: str, key: str) -> None:
        """Free the key, because nothing was done."""
        ...
