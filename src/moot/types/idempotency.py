"""What was asked once and is not to be done twice: the answer to a request that names itself by a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Standing: TypeAlias = Literal["new", "open", "done", "other"]
"""Of a key: nobody has used it; somebody is at it, or died at it; it was answered; it was used for another request."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it was given."""

    status: int
    """0 = it was given and not kept: too large, a stream that was cut, or one with a secret in it."""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known of a key."""

    standing: Standing
    worker: str = ""
    """Who is at it."""
    kept: Kept | None = None


class Idempotency(Protocol):
    """Answers by owner and key, for a day."""

    async def claim(self, owner: str, key: str, *, request: bytes, worker: str) -> Claim:
        """`new` when the key is the worker's from now on; `request` is the digest of what is asked."""
        ...

    async def keep(self, owner: str, key: str, kept: Kept) -> None:
        """The answer from now on."""
        ...

    async def release(self, owner: str, key: str) -> None:
        """The key is free again: nothing was done."""
        ...
