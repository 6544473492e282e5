"""Pages that are shared: looked at, made, listed, taken back, and shown to whoever has the link."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from moot.errors import Busy
from moot.guard.tokens import digest
from moot.runtime.sharing import finder_here
from moot.runtime.showing import Draft, looked_at, made
from moot.server.auth import Chatter, Reader, address_of
from moot.server.caller import Caller
from moot.server.finding import conversation_of
from moot.server.idempotency import SECRET
from moot.server.routing import Router
from moot.server.sockets import is_local
from moot.server.state import Here, Server
from moot.server.wire.base import ListOut
from moot.server.wire.shares import DraftOut, LeftOutOut, ShareIn, ShareMade, ShareOut, share_out

router = Router(tags=["shares"])

_LOOK = (
    ":root{color-scheme:light dark}"
    'body{margin:0 auto;max-width:34rem;padding:18vh 1.25rem 2rem;font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}'
    "h1{font-size:1.4rem;line-height:1.3;margin:0 0 .5rem}p{margin:0;opacity:.8}"
)
_GONE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="robots" content="noindex">'
    f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>There is nothing here</title><style>{_LOOK}</style>'
    "<main><h1>There is nothing here</h1><p>The link is wrong, has expired, or was taken back. "
    "Whoever gave it to you can make another one.</p></main></html>"
)
_QUIET = {
    "x-robots-tag": "noindex, nofollow, noarchive",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_NOTHING = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_LOOK.encode()).digest()).decode()}'; frame-ancestors 'none'; sandbox"


PAGE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The page."},
    404: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The link shows nothing, or nothing any more."},
}


@router.get("/api/shares")
async def list_shares(
    caller: Reader,
    conversation: Annotated[str | None, Query(max_length=200, description="Only of this one.")] = None,
    closed: Annotated[bool, Query(description="Also those that show nothing any more.")] = False,
) -> ListOut[ShareOut]:
    """Lists shared pages, newest first."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    return ListOut(data=[share_out(share) for share in await caller.store.shares.list(conversation=within, closed=closed)])


@router.post("/api/shares/preview")
async def preview_share(here: Here, caller: Reader, wanted: ShareIn) -> DraftOut:
    """Gives the page as it would be shared, with a list of what is not in it."""
    draft = await _draft(here, caller, wanted)
    told = [LeftOutOut(kind=one.kind, where=one.where, count=one.count) for one in draft.left_out]
    return DraftOut(title=draft.title, size=len(draft.page), digest=draft.digest, left_out=told, page=draft.page.decode())


@router.post("/api/shares", status_code=201)
async def create_share(here: Here, caller: Chatter, request: Request, wanted: ShareIn) -> ShareMade:
    """Shares a page; its link is shown this once."""
    request.scope[SECRET] = True
    draft = await _draft(here, caller, wanted)
    if wanted.digest is not None and wanted.digest != draft.digest:
        raise Busy("the conversation has gone on since the page was looked at", fix="look at it again")
    share, secret = await made(caller.store, draft, now=here.tokens.now, seconds=wanted.expires_in)
    base = request.base_url
    reach = "machine" if is_local(base.hostname or "") else "network"
    return ShareMade(**share_out(share).model_dump(), url=f"{base}share/{secret}", reach=reach)


@router.delete("/api/shares/{share_id}")
async def revoke_share(caller: Chatter, share_id: str) -> ShareOut:
    """Takes a shared page back: its link shows nothing from now on."""
    return share_out(await caller.store.shares.revoke(share_id))


@router.get("/share/{secret}", response_class=Response, response_model=None, responses=PAGE)
async def show_share(here: Here, request: Request, secret: str) -> Response:
    """Shows a shared page to whoever has its link."""
    address = address_of(request)
    here.views.check(address)
    here.views.wrong(address)
    page = await here.engine.store.shares.page(digest(secret)) if len(secret) <= 200 else None
    if page is None:
        return Response(_GONE, 404, {**_QUIET, "content-security-policy": _NOTHING}, "text/html")
    return Response(page.content, 200, {**_QUIET, "content-security-policy": page.policy}, "text/html")


async def _draft(here: Server, caller: Caller, wanted: ShareIn) -> Draft:
    found = await conversation_of(caller, wanted.conversation)
    return await looked_at(caller.store, found, finder_here(here.configuration.loaded.secrets, wanted.keep))
