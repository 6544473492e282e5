"""Finish reasons, token counts, sources and streamed arguments of the Gemini wire format."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moot.convert._vendor import as_list, as_object, as_text, count
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.usage import Usage

REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        ),
        "content-filter",
    ),
}

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def usage_of(usage: JsonObject) -> Usage:
    """Convert the counts to moot's: the vendor's answer count excludes reasoning, its prompt count excludes what tools read."""
    prompt, tools = count(usage.get("promptTokenCount")), count(usage.get("toolUsePromptTokenCount"))
    answer, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    return Usage(_sum(prompt, tools), _sum(answer, thoughts), count(usage.get("cachedContentTokenCount")), None, thoughts)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


def sources(candidate: JsonObject) -> Iterator[tuple[str, Chunk]]:
    """Yield each source as a key that identifies it and its chunk, which has no id yet."""
    for item in as_list(as_object(candidate.get("groundingMetadata")).get("groundingChunks")):
        yield from _grounded(as_object(item))
    for item in as_list(as_object(candidate.get("urlContextMetadata")).get("urlMetadata")):
        if url := as_text(as_object(item).get("retrievedUrl")):
            yield url, _url(url, "")
    citation = as_object(candidate.get("citationMetadata"))
    for item in as_list(citation.get("citationSources")) or as_list(citation.get("citations")):
        if url := as_text(as_object(item).get("uri")):
            yield url, _url(url, as_text(as_object(item).get("title")))


def _grounded(item: JsonObject) -> Iterator[tuple[str, Chunk]]:
    kind = next((name for name in ("web", "maps", "image", "retrievedContext") if isinstance(item.get(name), dict)), "web")
    found = as_object(item.get(kind))
    url, title = as_text(found.get("uri")) or as_text(found.get("sourceUri")), as_text(found.get("title"))
    if url.startswith(("http://", "https://")):
        yield url, _url(url, title)
    elif name := title or url or as_text(found.get("fileSearchStore")):
        document: Chunk = {"type": "source-document", "mediaType": "text/plain", "title": name}
        yield name, {**document, "filename": title} if title else document


def _url(url: str, title: str) -> Chunk:
    found: Chunk = {"type": "source-url", "url": url}
    return {**found, "title": title} if title else found


def put(arguments: JsonObject, piece: JsonObject) -> JsonObject:
    """Merge one piece of a streamed call into its arguments: `{jsonPath, stringValue | numberValue | boolValue | nullValue}`."""
    path: list[str | int] = []
    for match in _STEP.finditer(as_text(piece.get("jsonPath"))):
        path.append(int(match[2]) if match[2] is not None else next(step for step in (match[1], match[3], match[4]) if step is not None))
    value = next((piece[name] for name in ("stringValue", "numberValue", "boolValue") if name in piece), None)
    merged = _grown(arguments, path, value)
    return merged if isinstance(merged, dict) else arguments


def _grown(value: Json, path: list[str | int], piece: Json) -> Json:
    """Return the value with the piece at the end of the path. Strings are appended, everything else is replaced."""
    if not path:
        return value + piece if isinstance(value, str) and isinstance(piece, str) else piece
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        known = as_object(value)
        return {**known, step: _grown(known.get(step), rest, piece)}
    items = list(as_list(value))
    items += [None] * (step + 1 - len(items))
    items[step] = _grown(items[step], rest, piece)
    return items
