"""A finished piece of a message, in the shape of the AI SDK's `UIMessage.parts` (reference: AI SDK UI, UIMessage)."""

from __future__ import annotations

from typing import TypeAlias

from moot.types.canonical import JsonObject

Part: TypeAlias = JsonObject
"""Plain JSON with a `type`: text, reasoning, tool-NAME, dynamic-tool, source-url, source-document, file, reasoning-file, custom,
data-NAME, steering-message, step-start. Unknown types and fields are kept."""

TOOL_DONE = frozenset({"output-available", "output-error", "output-denied"})
"""Tool part states after which nothing more is expected."""


def is_settled(part: Part) -> bool:
    """Whether a tool part has its one output. What a call has shown on its way there is none."""
    return part.get("state") in TOOL_DONE and not part.get("preliminary")


def is_tool(part: Part) -> bool:
    """Whether the part is a tool call with whatever became of it."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")


def tool_name(part: Part) -> str:
    """The name of the tool that a tool part calls."""
    kind = str(part.get("type", ""))
    return str(part.get("toolName", "")) if kind == "dynamic-tool" else kind.removeprefix("tool-")


def note_of(part: Part) -> str:
    """What a `data-note` part or chunk tells a person: something about this answer that no other part says."""
    data = part.get("data")
    return str(data.get("text", "")) if isinstance(data, dict) else ""


def text_part(text: str) -> Part:
    """A finished text part."""
    return {"type": "text", "text": text, "state": "done"}


def text_of(parts: list[Part] | tuple[Part, ...]) -> str:
    """The text parts, joined by nothing: what a person reads as the message."""
    return "".join(text for part in parts if part.get("type") == "text" and isinstance(text := part.get("text"), str))
