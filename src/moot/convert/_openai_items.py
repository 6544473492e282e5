"""Items of an OpenAI response: who runs a call, its input, annotation targets, token counts."""

from __future__ import annotations

from moot.convert._vendor import as_list, as_object, as_text, count
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.usage import Usage

OWN_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that need an output from moot, and the field that holds their input."""

REASONS = {"max_output_tokens": "length", "content_filter": "content-filter"}
"""Reasons why a response is incomplete."""

_GIVEN = ("action", "actions", "queries", "operation", "arguments", "code", "container_id")
_PICTURES = {"jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif", "svg": "image/svg+xml"}
_FACTS = {"id": "response_id", "model": "model", "service_tier": "service_tier"}


def is_call(item: JsonObject) -> bool:
    """Return True if the item is a call of a tool that the vendor runs."""
    kind = as_text(item.get("type"))
    return kind not in OWN_CALLS and (kind.endswith("_call") or kind == "program")


def is_output(item: JsonObject) -> bool:
    """Return True if the item is the output of a call in another item."""
    return as_text(item.get("type")).endswith("_output")


def tool_of(item: JsonObject) -> str:
    """Return the name of the vendor's tool."""
    return as_text(item.get("name")) or as_text(item.get("type")).removesuffix("_call")


def given(item: JsonObject) -> JsonObject:
    """Return the input of a vendor tool's call."""
    return {name: item[name] for name in _GIVEN if item.get(name) is not None}


def rest_of(item: JsonObject, *without: str) -> JsonObject:
    """Return the item without its type, id and the named fields."""
    return {name: value for name, value in item.items() if name not in ("type", "id", *without)}


def picture(item: JsonObject) -> Chunk | None:
    """Return the image that a call generated, or None."""
    data = as_text(item.get("result"))
    if not data:
        return None
    media_type = _PICTURES.get(as_text(item.get("output_format")), "image/png")
    return {"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type}


def error_of(item: JsonObject) -> str:
    """Return why a vendor tool's call failed; empty if it did not."""
    error = item.get("error")
    text = as_text(error) or as_text(as_object(error).get("message"))
    if not text and isinstance(error, dict):
        text = "\n".join(as_text(as_object(piece).get("text")) for piece in as_list(error.get("content"))) or as_text(error.get("type"))
    return text or ("the tool failed" if item.get("status") == "failed" else "")


def cited(annotation: JsonObject) -> str:
    """Return a key that identifies the target of an annotation; empty if it has none."""
    return as_text(annotation.get("url")) or as_text(annotation.get("file_id"))


def source(annotation: JsonObject, id: str) -> Chunk:
    """Return the chunk of an annotation's source."""
    url, name = as_text(annotation.get("url")), as_text(annotation.get("filename"))
    if url:
        found: Chunk = {"type": "source-url", "sourceId": id, "url": url}
        title = as_text(annotation.get("title"))
        return {**found, "title": title} if title else found
    document: Chunk = {"type": "source-document", "sourceId": id, "mediaType": "text/plain", "title": name or cited(annotation)}
    return {**document, "filename": name} if name else document


def facts_of(response: JsonObject) -> JsonObject:
    """Return the facts about a response as a whole."""
    return {ours: response[theirs] for theirs, ours in _FACTS.items() if response.get(theirs) is not None}


def usage_of(usage: JsonObject) -> Usage:
    into, out = as_object(usage.get("input_tokens_details")), as_object(usage.get("output_tokens_details"))
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(into.get("cached_tokens")),
        count(into.get("cache_write_tokens")),
        count(out.get("reasoning_tokens")),
    )


def texts_of(item: JsonObject) -> list[tuple[str, int, str, list[Json]]]:
    """Return the text pieces of a message or reasoning item: kind, index, text, annotations."""
    found: list[tuple[str, int, str, list[Json]]] = []
    for field, kinds in (("summary", _THOUGHTS), ("content", _WORDS)):
        for index, piece in enumerate(as_list(item.get(field))):
            one = as_object(piece)
            kind = kinds.get(as_text(one.get("type")))
            if kind:
                found.append((kind, index, as_text(one.get("text")) or as_text(one.get("refusal")), as_list(one.get("annotations"))))
    return found


_THOUGHTS = {"summary_text": "summary"}
_WORDS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "thought"}
