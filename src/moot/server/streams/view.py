"""Conversion of chunks and parts to the format that a version of the AI SDK accepts, with blobs as download links.

Clients fail on chunks and fields they don't know, so those are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, cast

from moot.convert.files.attachments import HEAD, facts_of
from moot.convert.ui_message import valid_part
from moot.convert.unfold import Version, fit
from moot.server.streams.excerpts import Excerpt, excerpt, excerpt_text, link_of
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import KINDS, OURS, Chunk
from moot.types.message import Message, Part, is_tool, text_part
from moot.types.part_tree import linked

HEADER = "x-ai-sdk-version"

DELTAS = frozenset({"text-delta", "reasoning-delta", "tool-input-delta"})

Blobs: TypeAlias = list[Excerpt]
"""Full outputs that must be stored before clients can follow the links to them."""

_STEERING = "steering-message"
_URLS = frozenset({"file", "reasoning-file"})


def version_of(header: str | None) -> Version:
    """Return the client's version of the AI SDK; 6 if it sends no header."""
    return 7 if header is not None and header.strip().partition(".")[0] == "7" else 6


def view(chunk: Chunk, version: Version, blobs: Blobs) -> Chunk | None:
    """Return the chunk for this version of the AI SDK, or None if the version does not support it."""
    return fit(slim(chunk, blobs), version)


def slim(chunk: Chunk, blobs: Blobs) -> Chunk:
    """Return the chunk with excerpts of large outputs and with links in place of blobs. All fields are kept."""
    change = _CHANGED.get(str(chunk.get("type")))
    return chunk if change is None else change(chunk, blobs)


def message_view(message: Message, version: Version, blobs: Blobs) -> JsonObject:
    """Return the message as a UIMessage that `validateUIMessages` accepts, with the client's id if it has one."""
    shown: JsonObject = {"id": message.client_id or message.id, "role": message.role}
    if message.metadata:
        shown["metadata"] = message.metadata
    parts = [part for part in (part_view(part, version, blobs) for part in linked(message.parts)) if part is not None]
    if not parts and message.role != "assistant":
        parts = [text_part("")]  # only messages of the assistant may be empty
    shown["parts"] = cast("Json", parts)
    return shown


def part_view(part: Part, version: Version, blobs: Blobs) -> Part | None:
    """Return a valid part for this version of the AI SDK, or None if the version does not support the part."""
    part = valid_part(part)
    name = str(part.get("type"))
    if is_tool(part):
        return _output(part, blobs, place="resultProviderMetadata")
    if name == _STEERING:
        return fit(_steering(part, blobs), version)
    if version < 7 and (kind := KINDS.get(name)) is not None and kind.since > version:
        return None
    if name in _URLS:
        shown: Part = {**part, "url": link_of(str(part.get("url", "")))}
        return _without_ours(shown, "providerMetadata") if HEAD in facts_of(part) else shown
    return part


def _steering(chunk: Chunk, _blobs: Blobs) -> Chunk:
    parts = chunk.get("parts")
    return {**chunk, "parts": [_linked(part) for part in parts] if isinstance(parts, list) else []}


def _file(chunk: Chunk, _blobs: Blobs) -> Chunk:
    return {**chunk, "url": link_of(str(chunk.get("url", "")))}


def _output(shown: JsonObject, blobs: Blobs, *, place: str) -> JsonObject:
    """Replace a large output or error with its excerpt. Remove moot's own metadata from the field named `place`."""
    metadata = shown.get(place)
    if "errorText" in shown:
        name, cut = "errorText", excerpt_text(str(shown["errorText"]), metadata)
    elif "output" in shown:
        name, cut = "output", excerpt(shown["output"], metadata, keep=shown.get("preliminary") is not True)
    else:
        name, cut = "", None
    shown = _without_ours(shown, place)
    if cut is None:
        return shown
    if cut.blob is not None:
        blobs.append(cut)
    return {**shown, name: cut.value}


def _without_ours(shown: JsonObject, place: str) -> JsonObject:
    metadata = shown.get(place)
    if not isinstance(metadata, dict) or OURS not in metadata:
        return shown
    others: JsonObject = {owner: value for owner, value in metadata.items() if owner != OURS}
    return {**{key: value for key, value in shown.items() if key != place}, **({place: others} if others else {})}


def _linked(part: Json) -> Json:
    if isinstance(part, dict) and isinstance(url := part.get("url"), str):
        return {**part, "url": link_of(url)}
    return part


_CHANGED: dict[str, Callable[[Chunk, Blobs], Chunk]] = {
    "file": _file,
    "reasoning-file": _file,
    _STEERING: _steering,
    "tool-output-available": partial(_output, place="providerMetadata"),
    "tool-output-error": partial(_output, place="providerMetadata"),
}
