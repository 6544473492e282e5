"""Prompts for Claude Code: text, and files as blocks of the Messages API."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from moot.types.canonical import Json, JsonObject
from moot.types.context import RunContext
from moot.types.part import Part

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


async def content_of(context: RunContext, text: str, parts: Sequence[Part]) -> Json:
    """Return the text, or a list of blocks if there are files. A file that it can't accept is described in text."""
    blocks: list[Json] = [block for part in parts if part.get("type") == "file" if (block := await _piece(context, part))]
    return [*blocks, {"type": "text", "text": text}] if blocks else text


async def _piece(context: RunContext, part: Part) -> JsonObject:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    encoded = await _encoded(context, url)
    if encoded is None:
        return _link(part, url, media_type)
    if media_type in _PICTURES:
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": encoded}}
    if media_type == "application/pdf":
        return {"type": "document", "source": {"type": "base64", "media_type": media_type, "data": encoded}}
    if media_type.startswith("text/") or media_type == "application/json":
        text = base64.b64decode(encoded).decode("utf-8", "replace")
        return {"type": "text", "text": f"<file name={str(part.get('filename') or 'file')!r}>\n{text}\n</file>"}
    return _link(part, "", media_type)


def _link(part: Part, url: str, media_type: str) -> JsonObject:
    if media_type in _PICTURES and url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {
        "type": "text",
        "text": f"[a file that can't be shown here: {part.get('filename') or url or 'unnamed'}, {media_type or 'unknown'}]",
    }


async def _encoded(context: RunContext, url: str) -> str | None:
    """Return the bytes in base64, or None if they are stored elsewhere."""
    if url.startswith("blob:"):
        data = await context.ports.blobs.get(url.removeprefix("blob:"))
        return base64.b64encode(data).decode()
    head, comma, body = url.partition(",")
    return body if comma and head.startswith("data:") and head.endswith(";base64") else None
