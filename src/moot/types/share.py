"""The seam of shared pages: what somebody who has the link may read, until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from moot.types.canonical import Json
from moot.types.token import LOCAL_USER


@dataclass(frozen=True, slots=True)
class Share:
    """A page as it was when it was made. Its link is kept nowhere, only the link's hash."""

    id: str
    conversation: str
    title: str
    """Without what was left out."""
    expires_at: int
    """ms, as all of its times."""
    left_out: tuple[Json, ...] = ()
    """{kind, where, count} each."""
    size: int = 0
    """Bytes of the page."""
    created_at: int = 0
    revoked_at: int | None = None
    owner: str = LOCAL_USER

    def open(self, now: int) -> bool:
        """Whether it can be read at that time (ms)."""
        return self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class SharedPage:
    """What a reader gets."""

    content: bytes
    policy: str
    """Its Content-Security-Policy."""


@dataclass(frozen=True, slots=True)
class NewShare:
    """A page that is to be shared."""

    share: Share
    page: SharedPage
    digest: bytes = field(repr=False)
    """Of the secret in its link."""


class Shares(Protocol):
    """Shared pages of one owner, or everybody's."""

    async def add(self, new: NewShare) -> Share:
        """With its time, fsynced. Raises NotFound when the conversation is not there."""
        ...

    async def page(self, digest: bytes) -> SharedPage | None:
        """What that link shows now; None when there is no such link, it has expired, was revoked, or its conversation is deleted."""
        ...

    async def list(self, *, conversation: str | None = None, closed: bool = False) -> Sequence[Share]:
        """Newest first; with `closed` also those that show nothing any more."""
        ...

    async def revoke(self, reference: str) -> Share:
        """By id or unique prefix: it shows nothing from now on, and its page is gone, fsynced. Raises NotFound."""
        ...
