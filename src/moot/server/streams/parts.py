"""Conversion of message parts between the form in which clients send them and the stored form, which has attachments as blobs."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from moot.convert.files.attachments import HEAD, is_referenced, typed_parts
from moot.convert.ui_message import problem_of
from moot.errors import NotFound, UsageError
from moot.server.problems import Problem
from moot.server.streams.excerpts import LINK
from moot.types.blob import Blobs
from moot.types.canonical import JsonObject
from moot.types.chunk import OURS
from moot.types.message import Message, Part, is_tool
from moot.types.model import Detail

_LINK = re.compile(re.escape(LINK) + r"([0-9a-f]{64})")
_DATA = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


async def stored_parts(blobs: Blobs, parts: Sequence[JsonObject], quota: int = 0) -> tuple[Part, ...]:
    """Return the parts in their stored form. The same parts always result in the same form. Files count towards the user's upload quota.

    Raise Problem (422) for a part that `validateUIMessages` refuses, UsageError for an unreadable file or an empty message, NotFound for a
    missing blob, LimitReached if the quota is exceeded.
    """
    check_parts(parts)
    if any(map(is_tool, parts)):
        raise Problem(422, "A user message can't contain tool calls.", fix="Send the outputs of tool calls in the assistant's message.")
    if not any(part.get("text") if part.get("type") == "text" else part.get("type") in _SAYING or _is_data(part) for part in parts):
        raise UsageError("The message is empty.", fix="Send a text or file part.")
    return tuple([await _stored(blobs, part, quota) for part in parts])


async def stored_answer(blobs: Blobs, parts: Sequence[JsonObject], quota: int = 0) -> tuple[Part, ...]:
    """Return the parts of an assistant message that a client sends as its history, in their stored form. Raise Problem (422) for a part
    that `validateUIMessages` refuses, UsageError, NotFound or LimitReached as `stored_parts` does."""
    check_parts(parts)
    return tuple([await _stored(blobs, part, quota) for part in parts])


_SAYING = ("file",)
_FILES = ("file", "reasoning-file")
_METADATA = ("providerMetadata", "callProviderMetadata", "resultProviderMetadata")


def _is_data(part: JsonObject) -> bool:
    return str(part.get("type")).startswith("data-")


def check_parts(parts: Sequence[JsonObject]) -> None:
    """Raise Problem (422) if `validateUIMessages` refuses a part, or an image has an unknown `detail`."""
    for number, part in enumerate(parts, 1):
        if problem := problem_of(part):
            raise Problem(422, f"Part {number} of the message is not valid: {problem}", fix="Send parts that `validateUIMessages` accepts.")
        if part.get("type") == "file" and "detail" in part and part["detail"] not in get_args(Detail):
            problem = f"The detail of part {number} of the message is not valid."
            raise Problem(422, problem, fix=f"Send one of: {', '.join(get_args(Detail))}.")


def own_parts(parts: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the parts without the files that the prompt's text refers to. They are attached again when the text is read."""
    return [part for part in parts if not is_referenced(part)]


def is_same(stored: Sequence[Part], sent: Sequence[Part], *, references: bool = False) -> bool:
    """Return True if the client sent these parts again. Parts stored by older versions have a state that the client did not send,
    and the stored detail of an image can come from the conversation's settings.

    If `references` is set, `stored` also contains what the prompt's text refers to.
    """
    stored = typed_parts(stored) if references else stored
    return [_stateless(part) for part in stored] == [_stateless(part) for part in sent]


def _stateless(part: Part) -> Part:
    metadata = part.get("providerMetadata")
    ours = metadata.keys() if isinstance(metadata, dict) else ()
    dropped = {"state", "detail", "providerMetadata"} if OURS in ours else {"state", "detail"}
    return {name: value for name, value in part.items() if name not in dropped} if part.get("type") in ("text", "file") else part


async def as_sent(blobs: Blobs, message: Message) -> Message:
    """Return the message with the `data:` URLs that a client sent instead of the blobs in which moot stores them."""
    return replace(message, parts=tuple([await _as_sent(blobs, part) for part in message.parts]))


async def _as_sent(blobs: Blobs, part: Part) -> Part:
    metadata = part.get("providerMetadata")
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    head, url = ours.get(HEAD) if isinstance(ours, dict) else None, part.get("url")
    if not isinstance(head, str) or not isinstance(url, str) or not url.startswith(_BLOB):
        return part
    try:
        data = await blobs.get(url.removeprefix(_BLOB))
    except NotFound:  # the blob was deleted: the client finds out when it follows the link
        return part
    return {**part, "url": head + _encoded(head, data)}


_BLOB = "blob:"


def _encoded(head: str, data: bytes) -> str:
    return base64.b64encode(data).decode() if head.lower().endswith(";base64,") else quote_from_bytes(data, safe="!'()*-._~")


async def _stored(blobs: Blobs, part: JsonObject, quota: int) -> Part:
    for name in _METADATA:
        metadata = part.get(name)
        if isinstance(metadata, dict) and OURS in metadata:  # only moot writes it
            part = {**part, name: {owner: value for owner, value in metadata.items() if owner != OURS}}
    return await _file(blobs, part, quota) if part.get("type") in _FILES else part


async def _file(blobs: Blobs, part: JsonObject, quota: int) -> Part:
    url, media_type = part.get("url"), part.get("mediaType")
    if not isinstance(url, str) or not isinstance(media_type, str) or not media_type:
        raise UsageError("A file part requires `url` and `mediaType`.")
    place = await _place(blobs, url, media_type, quota)
    if url[:5].lower() != "data:":
        return {**part, "url": place}
    head = _DATA.match(url)
    assert head is not None, "its content was read"
    metadata = part.get("providerMetadata")
    return {**part, "url": place, "providerMetadata": {**(metadata if isinstance(metadata, dict) else {}), OURS: {HEAD: head[0]}}}


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
        f"Unsupported file URL {url[:20]!r}; expected data:, http:, https: or /api/blobs/HASH.",
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
