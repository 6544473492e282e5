"""A conversation as a file of a format."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import quote

import anyio.to_thread
from fastapi import Query
from starlette.responses import Response

from moot.errors import UsageError
from moot.plugins import FORMATS
from moot.runtime.exporting import exported, gathered
from moot.runtime.filing import slug
from moot.runtime.sharing import finder_here, kinds_of, refuse_whole, shareable
from moot.server.auth import Reader
from moot.server.finding import conversation_of
from moot.server.routing import Router
from moot.server.state import Here
from moot.server.wire.base import ListOut
from moot.server.wire.shares import FormatOut
from moot.types.format import Format, Holding, Outward, Written
from moot.types.recording import Recorder

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
        whole = await gathered(caller.store, found, writer, branches=branches)
        finder = finder_here(here.configuration.loaded.secrets, kinds_of(keep))
        shared = await anyio.to_thread.run_sync(shareable, whole, finder)
        title = shared.exported.conversation.title
        written = await anyio.to_thread.run_sync(writer.write, shared.exported)
    else:
        written = await exported(caller.store, found, writer, branches=branches)
    return Response(written.data, headers=_headers(writer, written, slug(title) or found.id))


def _headers(format: Format, written: Written, name: str) -> dict[str, str]:
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
    if not isinstance(format, Holding) or not format.holds:
        return None
    return FormatOut(
        id=format.name,
        words=format.words,
        suffix=format.suffix,
        kept=[thing for thing, keeping in format.holds.items() if keeping == "kept"],
        approximated=[thing for thing, keeping in format.holds.items() if keeping == "approximated"],
        readable=not isinstance(format, Outward),
        shareable=True,
    )
