"""Chunks converted for a major version of the AI SDK: an unknown type or field ends the client's stream with an error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from moot.types.canonical import JsonObject
from moot.types.chunk import FINISH_REASONS, Chunk, kind_of

Version = Literal[6, 7]

_DATA: dict[str, str] = {"steering-message": "data-steering"}
"""Chunk types of version 7 that carry information: an older client gets them as data."""


def for_version(chunks: Iterable[Chunk], version: Version) -> tuple[Chunk, ...]:
    """Return the chunks that such a client accepts, in order."""
    return tuple(fitted for chunk in chunks if (fitted := fit(chunk, version)) is not None)


def fit(chunk: Chunk, version: Version) -> Chunk | None:
    """Return the chunk without fields unknown to the client, or as a data chunk; None if it must not be sent.

    Returns the same object if nothing changes.
    """
    name = chunk.get("type")
    kind = kind_of(name) if isinstance(name, str) else None
    if kind is None:
        return None
    if kind.since > version:
        return _as_data(chunk)
    if not kind.required <= chunk.keys():
        return None
    known = kind.required | kind.optional | (kind.later if version >= 7 else frozenset[str]()) | {"type"}
    fitted = chunk
    if not chunk.keys() <= known or any(chunk[field] is None for field in chunk.keys() - kind.required):
        fitted = {field: value for field, value in chunk.items() if field in known and (value is not None or field in kind.required)}
    reason = fitted.get("finishReason")
    if name == "finish" and version < 7 and reason is not None and reason not in FINISH_REASONS:
        return {**fitted, "finishReason": "other"}
    return fitted


def _as_data(chunk: Chunk) -> Chunk | None:
    name = _DATA.get(str(chunk["type"]))
    if name is None:
        return None
    data: JsonObject = {field: value for field, value in chunk.items() if field not in ("type", "id")}
    converted: Chunk = {"type": name, "data": data}
    if isinstance(chunk.get("id"), str):
        converted["id"] = chunk["id"]
    return converted
