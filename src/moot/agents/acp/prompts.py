"""Prompts as content blocks: text, and files in the forms that the agent accepts."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from moot.errors import MootError
from moot.types.canonical import Json, JsonObject
from moot.types.context import RunContext
from moot.types.part import Part

_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


async def content_of(context: RunContext, text: str, parts: Sequence[Part], takes: JsonObject) -> list[Json]:
    """Return the content blocks. `takes` are the agent's `promptCapabilities`; a file that it can't accept is described in text."""
    made: list[Json] = [{"type": "text", "text": text}]
    for part in parts:
        if part.get("type") == "file":
            made.append(await _file(context, part, takes))
    return made


async def _file(context: RunContext, part: Part, takes: JsonObject) -> Json:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", "application/octet-stream"))
    name = str(part.get("filename") or "file")
    if url.startswith(("http://", "https://")):
        return {"type": "resource_link", "uri": url, "name": name, "mimeType": media_type}
    data = await _data(context, url)
    if data is None:
        return {"type": "text", "text": f"[{name}: {media_type}, is not available any more]"}
    kind = media_type.partition("/")[0]
    if kind in ("image", "audio") and takes.get(kind) is True:
        return {"type": kind, "mimeType": media_type, "data": b64encode(data).decode()}
    if media_type.startswith(_TEXTS):
        words = data.decode("utf-8", "replace")
        if takes.get("embeddedContext") is True:
            return {"type": "resource", "resource": {"uri": f"file:///{name}", "mimeType": media_type, "text": words}}
        return {"type": "text", "text": f"{name}:\n{words}"}
    if takes.get("embeddedContext") is True and kind not in ("image", "audio"):
        return {"type": "resource", "resource": {"uri": f"file:///{name}", "mimeType": media_type, "blob": b64encode(data).decode()}}
    return {"type": "text", "text": f"[{name}: {media_type}, not shown: this agent does not take it]"}


async def _data(context: RunContext, url: str) -> bytes | None:
    """Return the bytes of a `blob:` or `data:` URL, or None for a broken one."""
    if url.startswith("blob:"):
        try:
            return await context.ports.blobs.get(url.removeprefix("blob:"))
        except MootError:
            return None
    head, comma, body = url.partition(",")
    if not head.startswith("data:") or not comma:
        return None
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return b64decode(body)
    except (NotBase64, ValueError):
        return None
