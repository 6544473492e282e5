"""Routes that export conversations as files and share them as web pages."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Annotated, Any, Literal
from urllib.parse import quote

from anyio import to_thread
from fastapi import Query, Request
from pydantic import Field
from starlette.responses import Response

from moot.errors import Busy, UsageError
from moot.features.exports import gather, record_conversation, slug
from moot.features.shares import (
    DAY,
    LONGEST,
    Draft,
    RenderOrder,
    finder_here,
    kinds_of,
    page_policy,
    preview_page,
    refuse_whole,
    share_page,
)
from moot.guard.tokens import digest
from moot.plugins import FORMATS
from moot.server.auth import Chatter, Reader, Router, address_of
from moot.server.credentials import Caller
from moot.server.hosts import is_local
from moot.server.idempotency import SECRET, CurrentAttempt
from moot.server.models import In, ListOut, Out
from moot.server.resources import conversation_of
from moot.server.state import CurrentServer, Server
from moot.types.canonical import dumps
from moot.types.format import DeclaresFidelity, ExportFile, Format, WriteOnly
from moot.types.imports import Recorder
from moot.types.share import Share


class FormatOut(Out):
    """An export format."""

    id: str
    words: str
    """Description of the format."""
    suffix: str
    kept: list[str]
    """Kinds of items that are preserved exactly."""
    approximated: list[str]
    """Kinds of items that are preserved in another form. Items in neither list are lost."""
    readable: bool
    """True if `moot import` reads the format."""
    shareable: bool
    """True if the export parameter `share` is supported."""


class LeftOutOut(Out):
    """Number of items of one kind that were removed from a shared page. The items are not included."""

    kind: str
    where: str
    count: int


class ShareIn(In):
    """A page to share or preview."""

    conversation: Annotated[str, Field(min_length=1, max_length=200)]
    keep: list[Literal["paths", "names", "emails", "encoded", "files"]] = Field(default=[])
    """Kinds of items that are not removed from the page."""
    expires_in: Annotated[int, Field(ge=60, le=LONGEST)] = 7 * DAY
    """Lifetime of the link in seconds."""
    digest: Annotated[str, Field(max_length=64)] | None = None
    """Digest from the preview. If it is set, sharing fails if the conversation has changed since the preview."""


class DraftOut(Out):
    """Preview of a shared page."""

    title: str
    size: int
    digest: str
    left_out: list[LeftOutOut]
    page: str
    """The page as HTML without scripts or network access."""


class ShareOut(Out, of=Share, fields="id conversation title size left_out created_at expires_at revoked_at"):
    """A shared page. Its link is shown only once, when it is created."""

    left_out: list[LeftOutOut]


class ShareMade(ShareOut):
    """A new shared page with its link, which is shown only once."""

    url: str
    reach: Literal["machine", "network"]
    """Reach of the link: `machine` = it only works on the server's machine, `network` = it works for anyone who can reach the server."""


router = Router(tags=["export"])

_TYPES = {
    ".md": "text/markdown",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ipynb": "application/x-ipynb+json",
}


FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "description": "The exported file."}
}


@router.get("/api/exports")
async def list_export_formats(_: Reader) -> ListOut[FormatOut]:
    """List the export formats and the kinds of items that each one preserves."""
    formats: list[Format] = [FORMATS.make(name) for name in FORMATS.names()]
    return ListOut(data=[made for format in formats if (made := _out(format)) is not None])


@router.get("/api/conversations/{conversation_id}/export", response_class=Response, response_model=None, responses=FILE)
async def export(
    server: CurrentServer,
    caller: Reader,
    conversation_id: str,
    format: Annotated[str, Query(max_length=100, description="Format name from `GET /api/exports`.")],
    share: Annotated[
        bool, Query(description="Prepare the file for sharing: remove secrets, home folders, names and email addresses.")
    ] = False,
    keep: Annotated[str, Query(max_length=200, description="With `share`: kinds of items that are not removed, separated by commas.")] = "",
    branches: Annotated[bool, Query(description="Include other branches if the format supports them.")] = True,
    view: Annotated[bool, Query(description="Show the file in the browser instead of saving it. Only for `html`.")] = False,
) -> Response:
    """Export a conversation as a file. The header `x-moot-lost` counts the items that the format could not represent."""
    found = await conversation_of(caller, conversation_id)
    if format not in FORMATS:
        raise UsageError(FORMATS.unknown(format))
    writer: Format = FORMATS.make(format)
    if view and format != "html":
        raise UsageError("Only the format 'html' can be viewed in the browser.")
    finder = None
    if share:
        refuse_whole(writer)
        finder = finder_here(server.configuration.loaded.secrets, kinds_of(keep))
    if isinstance(writer, Recorder):
        content = await record_conversation(caller.store, found)
    else:
        content = await gather(caller.store, found, writer, branches=branches, counted=not share)
    file = await server.renderer.render(RenderOrder(format, content, finder))
    headers = _headers(writer, file.written, slug(file.title) or found.id)
    return Response(file.written.data, headers=headers | _viewed() if view else headers)


def _headers(format: Format, written: ExportFile, name: str) -> dict[str, str]:
    """Return headers that make browsers save the file instead of rendering it."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "conversation"
    lost = ", ".join(f"{thing.replace(' ', '-')}={count}" for thing, count in written.fidelity.lost.items())
    return {
        "content-type": f"{_TYPES.get(format.suffix, 'application/octet-stream')}",
        "content-disposition": f"attachment; filename=\"{plain}{format.suffix}\"; filename*=UTF-8''{quote(name)}{format.suffix}",
        **({"x-moot-lost": lost} if lost else {}),
    }


def _viewed() -> dict[str, str]:
    """Return headers that show an HTML page without scripts. The web page embeds it to print it."""
    policy = f"{page_policy()}; frame-ancestors 'self'; sandbox allow-same-origin allow-modals"
    return {"content-disposition": "inline", "content-security-policy": policy, "x-frame-options": "SAMEORIGIN"}


def _out(format: Format) -> FormatOut | None:
    """Return the description of an export format, or None for an import-only format."""
    if isinstance(format, Recorder):
        words = "everything, including all bytes sent by vendors; not suitable for sharing"
        return FormatOut(id=format.name, words=words, suffix=format.suffix, kept=[], approximated=[], readable=True, shareable=False)
    if not isinstance(format, DeclaresFidelity) or not format.holds:
        return None
    return FormatOut.of(
        format,
        id=format.name,
        kept=[thing for thing, keeping in format.holds.items() if keeping == "kept"],
        approximated=[thing for thing, keeping in format.holds.items() if keeping == "approximated"],
        readable=not isinstance(format, WriteOnly),
        shareable=True,
    )


shares_router = Router(tags=["shares"])

_STYLE = (
    ":root{color-scheme:light dark}"
    'body{margin:0 auto;max-width:34rem;padding:18vh 1.25rem 2rem;font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}'
    "h1{font-size:1.4rem;line-height:1.3;margin:0 0 .5rem}p{margin:0;opacity:.8}"
)
_GONE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="robots" content="noindex">'
    f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Page not found</title><style>{_STYLE}</style>'
    "<main><h1>Page not found</h1><p>The link is invalid, expired or revoked. "
    "Ask the person who shared it for a new one.</p></main></html>"
)
_QUIET = {
    "x-robots-tag": "noindex, nofollow, noarchive",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_NOTHING = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; frame-ancestors 'none'; sandbox"


PAGE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The page."},
    404: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "The link is invalid, expired or revoked."},
}


@shares_router.get("/api/shares")
async def list_shares(
    caller: Reader,
    conversation: Annotated[str | None, Query(max_length=200, description="Only pages of this conversation.")] = None,
    closed: Annotated[bool, Query(description="Include expired and revoked pages.")] = False,
) -> ListOut[ShareOut]:
    """List shared pages, newest first."""
    within = None if conversation is None else (await conversation_of(caller, conversation)).id
    return ListOut(data=[ShareOut.of(share) for share in await caller.store.shares.list(conversation=within, closed=closed)])


@shares_router.post("/api/shares/preview", response_model=DraftOut)
async def preview_share(server: CurrentServer, caller: Reader, body: ShareIn) -> Response:
    """Preview the page that would be shared, with the number of items of each kind that are removed from it."""
    draft = await _draft(server, caller, body)
    # in a thread, because a page can have many megabytes
    content = await to_thread.run_sync(lambda: dumps(DraftOut.of(draft, size=len(draft.page)).model_dump()))
    return Response(content, media_type="application/json")


@shares_router.post("/api/shares", status_code=201)
async def create_share(server: CurrentServer, caller: Chatter, attempt: CurrentAttempt, request: Request, body: ShareIn) -> ShareMade:
    """Share a conversation as a web page. The link is shown only once."""
    request.scope[SECRET] = True
    draft = await _draft(server, caller, body)
    if body.digest is not None and body.digest != draft.digest:
        raise Busy("The conversation has changed since the preview.", fix="Preview the page again.")
    share, secret = await share_page(caller.store, draft, now=server.tokens.now, seconds=body.expires_in, id=attempt.id)
    base = request.base_url
    reach = "machine" if all(is_local(host.rpartition(":")[0] or host) for host in server.hosts) else "network"
    return ShareMade.of(share, url=f"{base}share/{secret}", reach=reach)


@shares_router.delete("/api/shares/{share_id}")
async def revoke_share(caller: Chatter, share_id: str) -> ShareOut:
    """Revoke a shared page. Its link stops working immediately."""
    return ShareOut.of(await caller.store.shares.revoke(share_id))


@shares_router.get("/share/{secret}", response_class=Response, response_model=None, responses=PAGE)
async def show_share(server: CurrentServer, request: Request, secret: str) -> Response:
    """Show a shared page to anyone who has the link."""
    address = address_of(request)
    server.views.check(address)
    server.views.record(address)
    page = await server.engine.store.shares.page(digest(secret)) if len(secret) <= 200 else None
    if page is None:
        return Response(_GONE, 404, {**_QUIET, "content-security-policy": _NOTHING}, "text/html")
    return Response(page.content, 200, {**_QUIET, "content-security-policy": page.policy}, "text/html")


async def _draft(server: Server, caller: Caller, body: ShareIn) -> Draft:
    found = await conversation_of(caller, body.conversation)
    return await preview_page(caller.store, found, finder_here(server.configuration.loaded.secrets, body.keep), server.renderer.render)
