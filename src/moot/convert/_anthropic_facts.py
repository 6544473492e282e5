"""Finish reasons, token counts and citations of the Anthropic wire format."""

from __future__ import annotations

from moot.convert._vendor import as_object, as_text, count
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.usage import Usage

REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "compaction": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
}
PAUSES = frozenset({"pause_turn", "compaction"})
"""Reasons that only pause the answer: sent back with what it has written, the model continues."""


def usage_of(usage: JsonObject) -> Usage:
    """Convert the counts to moot's: the vendor's `input_tokens` excludes tokens read from or written to its cache."""
    fresh, read, written = (count(usage.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
    total = None if fresh is None and read is None and written is None else (fresh or 0) + (read or 0) + (written or 0)
    reasoning = count(as_object(usage.get("output_tokens_details")).get("thinking_tokens"))
    return Usage(total, count(usage.get("output_tokens")), read, written, reasoning)


def cited(citation: JsonObject) -> str:
    """Return a key that identifies a citation's source; empty if it has none."""
    url = as_text(citation.get("url"))
    return url or (f"{citation['document_index']}:{_title(citation)}" if "document_index" in citation else "")


def source(citation: JsonObject, id: str) -> Chunk:
    """Return the chunk of a citation's source."""
    url, title = as_text(citation.get("url")), _title(citation)
    if url:
        found: Chunk = {"type": "source-url", "sourceId": id, "url": url}
        return {**found, "title": title} if title else found
    media_type = "application/pdf" if citation.get("type") == "page_location" else "text/plain"
    return {"type": "source-document", "sourceId": id, "mediaType": media_type, "title": title}


def _title(citation: JsonObject) -> str:
    return as_text(citation.get("title")) or as_text(citation.get("document_title"))
