"""Excerpts of large tool outputs. Clients receive the beginning, the end and a link to the full output."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import cast

from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import OURS

BYTES = 16 << 10
"""Outputs with more bytes are sent as excerpts."""
ROWS = 200
"""Outputs with more lines, and lists with more items, are sent as excerpts."""
END_BYTES = 4 << 10
"""Maximum size in bytes of each part of an excerpt: the output's beginning and its end."""
END_ROWS = 50
LINK = "/api/blobs/"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A tool output as sent to clients, and the full output, which must be stored as a blob before it is sent."""

    value: Json
    blob: bytes | None = None
    """Content of the linked blob; None if it is already stored."""
    media_type: str = TEXT


def link_of(url: str) -> str:
    """Return the download path for a `blob:` URL; other URLs are unchanged."""
    return f"{LINK}{url.removeprefix('blob:')}" if url.startswith("blob:") else url


def excerpt(output: Json, metadata: Json = None, *, keep: bool = True) -> Excerpt | None:
    """Return the excerpt of an output, or None if it is small.

    `metadata` is the `providerMetadata` of the output's chunk. For a truncated output, it contains the hash of the blob with the full text.
    With `keep=False`, for preliminary outputs, the full output is not stored and the excerpt has no link.
    """
    whole = _whole(metadata)
    if isinstance(output, str):
        return _of_text(output, whole, keep=keep)
    if isinstance(output, dict) and output.get("type") == "content" and isinstance(items := output.get("value"), list):
        return _of_content(output, items, whole)
    if isinstance(output, list | dict):
        return _of_value(output, keep=keep)
    return None


def excerpt_text(text: str, metadata: Json = None) -> Excerpt | None:
    """Return the excerpt of an error text as a string, or None if the text is small."""
    found = _of_text(text, _whole(metadata), keep=True)
    if found is None or not isinstance(found.value, dict):
        return None
    value = found.value
    words = f"{value['head']}\n[… {value['size']:,} bytes in total: {value.get('url')} …]\n{value['tail']}"
    return Excerpt(words, found.blob, found.media_type)


def _whole(metadata: Json) -> JsonObject | None:
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    return ours if isinstance(ours, dict) and isinstance(ours.get("blob"), str) else None


def _of_text(text: str, whole: JsonObject | None, *, keep: bool) -> Excerpt | None:
    size, rows = len(text.encode("utf-8", "replace")), text.count("\n") + 1
    if whole is None and size <= BYTES and rows <= ROWS:
        return None
    value: JsonObject = {"type": "excerpt", "head": _first(text), "tail": _last(text), "size": size, "rows": rows, "mediaType": TEXT}
    if whole is not None:
        value |= {name: whole[name] for name in ("size", "rows", "mediaType", "tail") if name in whole}
        value["url"] = f"{LINK}{whole['blob']}"
        return Excerpt(value)
    return _linked(value, text.encode("utf-8", "replace"), TEXT) if keep else Excerpt(value)


def _of_value(output: list[Json] | JsonObject, *, keep: bool) -> Excerpt | None:
    data = dumps(output)
    rows = len(output) if isinstance(output, list) else 0
    if len(data) <= BYTES and rows <= ROWS:
        return None
    value: JsonObject = {"type": "excerpt", "size": len(data), "mediaType": "application/json"}
    if isinstance(output, list):
        value |= {"head": _some(output), "tail": _some(output[::-1])[::-1], "rows": rows}
    else:
        text = data.decode()
        value |= {"head": _first(text), "tail": _last(text)}
    return _linked(value, data, "application/json") if keep else Excerpt(value)


def _of_content(output: JsonObject, items: list[Json], whole: JsonObject | None) -> Excerpt | None:
    """Return the excerpt of an output with text and images: large texts become excerpts, images become links."""
    found: Excerpt | None = None
    shown: list[Json] = []
    for item in items:
        piece = cast("JsonObject", item) if isinstance(item, dict) else {}
        text, url = piece.get("text"), piece.get("url")
        if isinstance(text, str) and (cut := _of_text(text, whole, keep=True)) is not None:
            found = cut
            item = cut.value
        elif isinstance(url, str) and url.startswith("blob:"):
            found = found or Excerpt(None)
            item = {**piece, "url": link_of(url)}
        shown.append(item)
    return None if found is None else Excerpt({**output, "value": shown}, found.blob, found.media_type)


def _linked(value: JsonObject, data: bytes, media_type: str) -> Excerpt:
    value["url"] = f"{LINK}{hashlib.sha256(data).hexdigest()}"
    return Excerpt(value, data, media_type)


def _first(text: str) -> str:
    rows = text[: END_BYTES * 4].split("\n", END_ROWS)[:END_ROWS]
    return "\n".join(rows).encode("utf-8", "replace")[:END_BYTES].decode("utf-8", "ignore")


def _last(text: str) -> str:
    rows = text[-END_BYTES * 4 :].rsplit("\n", END_ROWS)[-END_ROWS:]
    return "\n".join(rows).encode("utf-8", "replace")[-END_BYTES:].decode("utf-8", "ignore")


def _some(items: list[Json]) -> list[Json]:
    """Return the first items that fit into END_BYTES together, at most END_ROWS."""
    some: list[Json] = []
    room = END_BYTES
    for item in items[:END_ROWS]:
        room -= len(dumps(item))
        if room < 0:
            break
        some.append(item)
    return some
