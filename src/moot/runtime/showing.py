"""Shared pages. A page is previewed first, and exactly the previewed page is shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import anyio.to_thread

from moot.errors import UsageError
from moot.guard.sharing import Finder
from moot.guard.tokens import digest, new_code
from moot.plugins import FORMATS, Registry
from moot.runtime.exporting import gathered
from moot.runtime.sharing import LeftOut, shareable
from moot.types.canonical import Json
from moot.types.conversation import Conversation
from moot.types.format import Format
from moot.types.ids import new_id
from moot.types.share import NewShare, Share, SharedPage
from moot.types.store import Holdings

__all__ = ["DAY", "LONGEST", "Draft", "left_out_json", "looked_at", "made"]

DAY = 86_400
LONGEST = 366 * DAY
"""Maximum lifetime of a page in seconds."""

_PAGES = Registry("moot.pages", {"policy": "moot.formats.html.page:policy"})


@dataclass(frozen=True, slots=True)
class Draft:
    """The preview of a page."""

    conversation: Conversation
    title: str
    page: bytes
    left_out: tuple[LeftOut, ...]

    @property
    def digest(self) -> str:
        """Hash of the page, to share exactly what was previewed."""
        return sha256(self.page).hexdigest()


async def looked_at(holdings: Holdings, conversation: Conversation, finder: Finder) -> Draft:
    """Return a preview of the current branch with its sub-agents, redacted."""
    format: Format = FORMATS.make("html")
    whole = await gathered(holdings, conversation, format, branches=False)
    if not whole.messages:
        raise UsageError(f"the conversation {conversation.id!r} has no messages to share", fix="send a message first")
    shared = await anyio.to_thread.run_sync(shareable, whole, finder)
    written = await anyio.to_thread.run_sync(format.write, shared.exported)
    return Draft(conversation, shared.exported.conversation.title, written.data, shared.left_out)


async def made(holdings: Holdings, draft: Draft, *, now: int, seconds: float) -> tuple[Share, str]:
    """Share a page and return it with the secret of its link, which is shown only once. `now` is in ms. Raise UsageError."""
    if not 0 < seconds <= LONGEST:
        raise UsageError(f"a shared page must expire within {LONGEST // DAY} days", fix="use a duration such as 12h, 7d or 30d")
    secret = new_code()
    policy: Callable[[], str] = _PAGES.load("policy")
    share = Share(
        new_id(), draft.conversation.id, draft.title, now + round(seconds * 1000), tuple(left_out_json(one) for one in draft.left_out)
    )
    page = SharedPage(draft.page, f"{policy()}; frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox")
    return await holdings.shares.add(NewShare(share, page, digest(secret))), secret


def left_out_json(one: LeftOut) -> Json:
    """Return the entry as stored and as shown in JSON output."""
    return {"kind": one.kind, "where": one.where, "count": one.count}
