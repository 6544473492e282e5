"""Formats, and pages that are shared."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moot.runtime.showing import DAY, LONGEST
from moot.server.wire.base import In, Out
from moot.types.share import Share


class FormatOut(Out):
    """A format that conversations can be written in."""

    id: str
    words: str
    """What such a file is good for."""
    suffix: str
    kept: list[str]
    """What comes back as it was, or is there to be read."""
    approximated: list[str]
    """What is there in another form; what is in neither list is lost."""
    readable: bool
    """Whether `moot import` reads it."""
    shareable: bool
    """Whether it can be written for others."""


class LeftOutOut(Out):
    """Something that others do not get to see, never the thing itself."""

    kind: str
    where: str
    count: int


class ShareIn(In):
    """A page to share, or to look at first."""

    conversation: Annotated[str, Field(min_length=1, max_length=200)]
    keep: list[Literal["paths", "names", "emails", "encoded", "files"]] = Field(default=[])
    """Kinds that stay in."""
    expires_in: Annotated[int, Field(ge=60, le=LONGEST)] = 7 * DAY
    """Seconds that the link works."""
    digest: Annotated[str, Field(max_length=64)] | None = None
    """Of the page that was looked at: it is refused when the conversation has gone on since."""


class DraftOut(Out):
    """A page as it would be shared."""

    title: str
    size: int
    digest: str
    left_out: list[LeftOutOut]
    page: str
    """HTML that runs nothing and fetches nothing."""


class ShareOut(Out):
    """A page that is shared; its link was told when it was made, and nobody can tell it again."""

    id: str
    conversation: str
    title: str
    size: int
    left_out: list[LeftOutOut]
    created_at: int
    expires_at: int
    revoked_at: int | None


class ShareMade(ShareOut):
    """A new one, with its link, shown this once."""

    url: str
    reach: Literal["machine", "network"]
    """Who can open the link: programs on the server's own machine, or whoever reaches the server."""


def share_out(share: Share) -> ShareOut:
    """A shared page as it is sent."""
    return ShareOut(
        id=share.id,
        conversation=share.conversation,
        title=share.title,
        size=share.size,
        left_out=[LeftOutOut.model_validate(one) for one in share.left_out],
        created_at=share.created_at,
        expires_at=share.expires_at,
        revoked_at=share.revoked_at,
    )
