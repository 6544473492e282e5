"""Parsing of one line of the Agent Client Protocol: a JSON-RPC message, with exact integers in a call's input."""

from __future__ import annotations

from moot.convert import _sse
from moot.convert._vendor import as_object, as_text
from moot.types import canonical
from moot.types.canonical import Json, JsonObject


def message_of(raw: bytes) -> JsonObject | None:
    """Return the message in a line, or None for noise, truncated lines and nesting that can't be stored."""
    data = raw.strip()
    if data[:1] != b"{":
        return None
    try:
        message = _sse.parse(data)
        if data.count(b"{") + data.count(b"[") > canonical.MAX_DEPTH:
            canonical.loads_exact(canonical.dumps(message))
    except ValueError:
        return None
    if b'"rawInput"' in data and isinstance(message, dict):
        try:
            return as_object(canonical.loads_exact(data)) or message  # keeps every digit of integers in a call's input
        except ValueError:
            return message
    return message if isinstance(message, dict) else None


def id_of(message: JsonObject) -> str:
    """Return a message's id as text, empty if it has none. Some agents answer request 2 with the id "2"."""
    id = message.get("id")
    return f"{id}" if isinstance(id, int | str) and not isinstance(id, bool) else ""


def content_text(content: Json) -> str:
    """Return the text of a content block; other content is described by its name."""
    block = as_object(content)
    match block.get("type"):
        case "text":
            return as_text(block.get("text"))
        case "resource_link":
            return f"[{as_text(block.get('name')) or 'resource'}: {as_text(block.get('uri'))}]"
        case "resource":
            resource = as_object(block.get("resource"))
            return as_text(resource.get("text")) or f"[resource: {as_text(resource.get('uri'))}]"
        case "image" | "audio" as kind:
            return f"[{kind}, {as_text(block.get('mimeType')) or 'unknown'}]"
        case _:
            return as_text(block.get("text"))
