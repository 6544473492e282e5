"""Exports and shared pages."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Annotated, Any, Literal
from urllib.parse import quote

import anyio.to_thread
from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from moot.errors import Busy, UsageError
from moot.features.exports import export_conversation, gather, slug
from moot.features.shares import DAY, LONGEST, Draft, finder_here, kinds_of, preview_page, redact_conversation, refuse_whole, share_page
from moot.guard.tokens import digest
from moot.plugins import FORMATS
from moot.server.auth import Chatter, Reader, Router, address_of
from moot.server.credentials import Caller
from moot.server.hosts import is_local
from moot.server.idempotency import SECRET
from moot.server.models import In, ListOut, Out
from moot.server.resources import conversation_of
from moot.server.state import Here, Server
from moot.types.format import DeclaresFidelity, ExportFile, Format, WriteOnly
from moot.types.imports import Recorder
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


router = Router(tags=["export"])

_TYPES = {
    ".md": "text/markdown",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ipynb": "application/x-ipynb+json",
}


FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "description": "The file."}
}


@router.get("/api/exports")
async def list_export_formats(_: Reader) -> ListOut[FormatOut]:
    """Lists the formats that conversations can be written in, and what of a conversation each holds."""
    formats: list[Format] = [FORMATS.make(name) for name in FORMATS.names()]
    return ListOut(data=[made for format in formats if (made := _out(format)) is not None])


@router.get("/api/conversations/{conversation_id}/export", response_class=Response, response_model=None, responses=FILE)
async def export(
    here: Here,
    caller: Reader,
    conversation_id: str,
    format: Annotated[str, Query(max_length=100, description="A name of `GET /api/exports`.")],
    share: Annotated[bool, Query(description="For others: secrets, home folders, names and e-mails are left out.")] = False,
    keep: Annotated[str, Query(max_length=200, description="With `share`: kinds that stay in, joined by commas.")] = "",
    branches: Annotated[bool, Query(description="The other branches too, where the format holds them.")] = True,
) -> Response:
    """Downloads a conversation as a file; `x-moot-lost` counts what the format could not hold."""
    found = await conversation_of(caller, conversation_id)
    if format not in FORMATS:
        raise UsageError(FORMATS.unknown(format))
    writer: Format = FORMATS.make(format)
    title = found.title
    if share:
        refuse_whole(writer)
        whole = await gather(caller.store, found, writer, branches=branches)
        finder = finder_here(here.configuration.loaded.secrets, kinds_of(keep))
        shared = await anyio.to_thread.run_sync(redact_conversation, whole, finder)
        title = shared.exported.conversation.title
        written = await anyio.to_thread.run_sync(writer.write, shared.exported)
    else:
        written = await export_conversation(caller.store, found, writer, branches=branches)
    return Response(written.data, headers=_headers(writer, written, slug(title) or found.id))


def _headers(format: Format, written: ExportFile, name: str) -> dict[str, str]:
    """A file to keep and never a page of this server's."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "conversation"
    lost = ", ".join(f"{thing.replace(' ', '-')}={count}" for thing, count in written.fidelity.lost.items())
    return {
        "content-type": f"{_TYPES.get(format.suffix, 'application/octet-stream')}",
        "content-disposition": f"attachment; filename=\"{plain}{format.suffix}\"; filename*=UTF-8''{quote(name)}{format.suffix}",
        **({"x-moot-lost": lost} if lost else {}),
    }


def _out(format: Format) -> FormatOut | None:
    """None for a format that can only be read."""
    if isinstance(format, Recorder):
        words = "everything, with every byte that vendors sent; not for others"
        return FormatOut(id=format.name, words=words, suffix=format.suffix, kept=[], approximated=[], readable=True, shareable=False)
    if not isinstance(format, DeclaresFidelity) or not format.holds:
        return None
    return FormatOut(
        id=format.name,
        words=format.words,
        suffix=format.suffix,
        kept=[thing for thing, keeping in format.holds.items() if keeping == "kept"],
        approximated=[thing for thing, keeping in format.holds.items() if keeping == "approximated"],
        readable=not isinstance(format, WriteOnly),
        shareable=True,
    )


shares_router = Router(tags=["shares"])

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


@shares_router.get("/api/shares")
async def list_shares(
    caller: Reader,
    conversation: Annotated[str | None, Query(max_length=200, description="Only of this one.")] = None,
    closed: Annotated[bool, Query(description="Also those that show nothing any more.")] = False,
) -> ListOut[ShareOut]:
    """Lists shared pages, newest first."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    return ListOut(data=[share_out(share) for share in await caller.store.shares.list(conversation=within, closed=closed)])


@shares_router.post("/api/shares/preview")
async def preview_share(here: Here, caller: Reader, wanted: ShareIn) -> DraftOut:
    """Gives the page as it would be shared, with a list of what is not in it."""
    draft = await _draft(here, caller, wanted)
    told = [LeftOutOut(kind=one.kind, where=one.where, count=one.count) for one in draft.left_out]
    return DraftOut(title=draft.title, size=len(draft.page), digest=draft.digest, left_out=told, page=draft.page.decode())


@shares_router.post("/api/shares", status_code=201)
async def create_share(here: Here, caller: Chatter, request: Request, wanted: ShareIn) -> ShareMade:
    """Shares a page; its link is shown this once."""
    request.scope[SECRET] = True
    draft = await _draft(here, caller, wanted)
    if wanted.digest is not None and wanted.digest != draft.digest:
        raise Busy("the conversation has gone on since the page was looked at", fix="look at it again")
    share, secret = await share_page(caller.store, draft, now=here.tokens.now, seconds=wanted.expires_in)
    base = request.base_url
    reach = "machine" if is_local(base.hostname or "") else "network"
    return ShareMade(**share_out(share).model_dump(), url=f"{base}share/{secret}", reach=reach)


@shares_router.delete("/api/shares/{share_id}")
async def revoke_share(caller: Chatter, share_id: str) -> ShareOut:
    """Takes a shared page back: its link shows nothing from now on."""
    return share_out(await caller.store.shares.revoke(share_id))


@shares_router.get("/share/{secret}", response_class=Response, response_model=None, responses=PAGE)
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
    return await preview_page(caller.store, found, finder_here(here.configuration.loaded.secrets, wanted.keep))
