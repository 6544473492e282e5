"""Parts of a client's message in their stored form: attachments as blobs, and only parts allowed in user messages."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes, urlsplit

from moot.errors import UsageError
from moot.server.streams.excerpts import LINK
from moot.types.canonical import JsonObject
from moot.types.message import Part, text_part
from moot.types.store import Blobs

_LINK = re.compile(re.escape(LINK) + r"([0-9a-f]{64})")
_DATA = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


async def stored_parts(blobs: Blobs, parts: Sequence[JsonObject], quota: int = 0) -> tuple[Part, ...]:
    """Return the parts in their stored form, which is the same if they are sent again. Files count towards their owner's upload quota.

    Raise UsageError for an unreadable file or an empty message, NotFound for a missing blob, LimitReached if the quota is exceeded.
    """
    kept = [part for part in [await _stored(blobs, part, quota) for part in parts] if part is not None]
    if not kept:
        raise UsageError("The message is empty.", fix="Send a text or file part.")
    return tuple(kept)


async def _stored(blobs: Blobs, part: JsonObject, quota: int) -> Part | None:
    kind = part.get("type")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return text_part(text) if text else None
    if kind == "file":
        return await _file(blobs, part, quota)
    if isinstance(kind, str) and kind.startswith("data-") and "data" in part:
        return {name: part[name] for name in ("type", "id", "data") if name in part}
    return None  # step boundaries, sources and calls don't occur in user messages


async def _file(blobs: Blobs, part: JsonObject, quota: int) -> Part:
    url, media_type = part.get("url"), part.get("mediaType")
    if not isinstance(url, str) or not isinstance(media_type, str) or not media_type:
        raise UsageError("A file part requires `url` and `mediaType`.")
    stored: Part = {"type": "file", "mediaType": media_type, "url": await _place(blobs, url, media_type, quota)}
    if isinstance(name := part.get("filename"), str) and name:
        stored["filename"] = name[:255]
    return stored


async def _place(blobs: Blobs, url: str, media_type: str, quota: int) -> str:
    if url[:5].lower() == "data:":
        return f"blob:{(await blobs.upload(_bytes(url), media_type, quota=quota)).sha256}"
    link = _LINK.fullmatch(urlsplit(url).path)
    if link is not None:
        await blobs.get(link[1], limit=1)
        return f"blob:{link[1]}"
    if url[:8].lower().startswith(("http://", "https://")):
        return url
    raise UsageError(
        f"Unsupported file URL {url[:20]!r}; expected data:, http:, https: or the link of a blob.",
        fix="Upload the file to /api/blobs first.",
    )


def _bytes(url: str) -> bytes:
    head = _DATA.match(url)
    if head is None:
        raise UsageError("Invalid data: URL.", fix="Send data:TYPE;base64,…")
    body = url[head.end() :]
    if not head[2].lower().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"Invalid base64 in a data: URL: {error}.") from error
