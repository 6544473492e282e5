"""One line of the Agent Client Protocol, read: a JSON-RPC message, to the letter where a call's input is in it."""

from __future__ import annotations

from moot.convert import _sse
from moot.convert._vendor import as_object, as_text
from moot.types import canonical
from moot.types.canonical import Json, JsonObject

__all__ = ["content_text", "id_of", "message_of"]


def message_of(raw: bytes) -> JsonObject | None:
    """The message in a line; None for what is none: noise, a cut line, nesting that nobody can store."""
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
            return as_object(canonical.loads_exact(data)) or message  # every digit of a call's integers is kept
        except ValueError:
            return message
    return message if isinstance(message, dict) else None


def id_of(message: JsonObject) -> str:
    """A message's id as text, empty where it has none: some agents answer with "2" what was asked as 2."""
    id = message.get("id")
    return f"{id}" if isinstance(id, int | str) and not isinstance(id, bool) else ""


def content_text(content: Json) -> str:
    """The text of a content block; what is no text is told by its name."""
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
