"""ACP content other than text, and the agent's plan, as chunks."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import urlsplit

from moot.convert._vendor import as_list, as_object, as_text
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk

_STATES = frozenset({"pending", "in_progress", "completed"})


def attachment(content: JsonObject) -> Chunk | None:
    """Return the chunk of a content block that is not text, or None. A source's id is still empty."""
    match content.get("type"):
        case "image" | "audio":
            return _file(as_text(content.get("data")), as_text(content.get("mimeType")), as_text(content.get("uri")))
        case "resource_link":
            return _source(as_text(content.get("uri")), as_text(content.get("title")) or as_text(content.get("name")), content)
        case "resource":
            resource = as_object(content.get("resource"))
            blob = as_text(resource.get("blob")) or b64encode(as_text(resource.get("text")).encode("utf-8", "replace")).decode()
            plain = "text/plain;charset=utf-8" if "text" in resource else "application/octet-stream"
            return _file(blob, as_text(resource.get("mimeType")) or plain, "")
        case _:
            return None


def plan_of(update: JsonObject) -> JsonObject:
    """Return the whole current plan: its entries with their status."""
    entries: list[Json] = []
    for entry in map(as_object, as_list(update.get("entries"))):
        status = as_text(entry.get("status"))
        entries.append({"content": as_text(entry.get("content")), "status": status if status in _STATES else "pending"})
    return {"entries": entries}


def _file(encoded: str, media_type: str, uri: str) -> Chunk | None:
    url = f"data:{media_type};base64,{encoded}" if encoded else uri if _on_the_web(uri) else ""
    return {"type": "file", "url": url, "mediaType": media_type or "application/octet-stream"} if url else None


def _source(uri: str, title: str, content: JsonObject) -> Chunk | None:
    if not uri:
        return None
    if _on_the_web(uri):
        return {"type": "source-url", "sourceId": "", "url": uri, "title": title or uri}
    media_type = as_text(content.get("mimeType")) or "application/octet-stream"
    return {"type": "source-document", "sourceId": "", "mediaType": media_type, "title": title or uri, "filename": uri}


def _on_the_web(uri: str) -> bool:
    """Return True for an http or https URL."""
    try:
        return urlsplit(uri).scheme in ("http", "https")
    except ValueError:
        return False
