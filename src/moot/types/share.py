"""The interface of shared pages: snapshots of a conversation that anyone with the link can read until they expire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from moot.types.canonical import Json
from moot.types.token import LOCAL_USER


@dataclass(frozen=True, slots=True)
class Share:
    """A shared snapshot of a conversation. Only a hash of its link is stored."""

    id: str
    conversation: str
    title: str
    """Title of the page, redacted like its content."""
    expires_at: int
    """Time at which the link expires, in milliseconds since the epoch."""
    left_out: tuple[Json, ...] = ()
    """Items removed from the page, each `{kind, where, count}`."""
    size: int = 0
    """Size of the page in bytes."""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""
    revoked_at: int | None = None
    """Time of revocation, in milliseconds since the epoch; None = not revoked."""
    owner: str = LOCAL_USER

    def open(self, now: int) -> bool:
        """Return True if the page can be read at the given time (ms)."""
        return self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class SharedPage:
    """The page as sent to a reader."""

    content: bytes
    policy: str
    """Content-Security-Policy of the page."""


@dataclass(frozen=True, slots=True)
class NewShare:
    """A page to share."""

    share: Share
    page: SharedPage
    digest: bytes = field(repr=False)
    """Digest of the secret in its link."""


class Shares(Protocol):
    """Shared pages of one owner, or of all owners."""

    async def add(self, new: NewShare) -> Share:
        """Store a page durably and return it with its creation time. Raise NotFound if the conversation does not exist."""
        ...

    async def page(self, digest: bytes) -> SharedPage | None:
        """Return the page behind a link; None if the link is unknown, expired or revoked, or the conversation is deleted."""
        ...

    async def list(self, *, conversation: str | None = None, closed: bool = False) -> Sequence[Share]:
        """List shares, newest first; if `closed` is set, include expired and revoked ones."""
        ...

    async def revoke(self, reference: str) -> Share:
        """Revoke the share with this id or unique prefix, and delete its page, durably. Raise NotFound if none or several match."""
        ...
