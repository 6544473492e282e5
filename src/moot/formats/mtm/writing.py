"""Conversations as unversioned notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.formats._source.fields import iso_of
from moot.formats._steps import model_calls, output_text, pretty
from moot.formats._writing import fidelity_of
from moot.formats.mtm.attachments import ghost_block
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation, Keeping, Written
from moot.types.message import Message
from moot.types.part import Part, is_settled, text_of, tool_name

__all__ = ["HOLDS", "is_picture", "metadata_of", "unversioned"]

HOLDS: dict[str, Keeping] = {
    "messages": "kept",
    "titles": "kept",
    "pictures": "kept",
    "files": "approximated",
    "reasoning": "approximated",
    "tool calls": "approximated",
}
"""Text files become context snapshots, the reasoning of a model call is joined, and tool outputs become text."""


def unversioned(exported: ExportedConversation) -> Written:
    context: list[Json] = []
    left: list[Part] = []
    for message in exported.messages:
        context += _user(message, left) if message.role == "user" else _others(message, left)
    return Written(pretty({"metadata": metadata_of(exported), "context": context}), fidelity_of(exported, HOLDS, *left))


def metadata_of(exported: ExportedConversation) -> JsonObject:
    """Return the notebook's metadata. It grants access to the conversation's directory only."""
    conversation = exported.conversation
    directory = conversation.directory
    facts: JsonObject = {
        "uuid": conversation.id,
        "name": conversation.title or "moot",
        "created_at": iso_of(conversation.created_at),
        "parent_agent_id": conversation.parent,
        "allowed_uris": [Path(directory).as_uri()] if directory and Path(directory).is_absolute() else [],
    }
    model, at, provider = conversation.model.rpartition("@")
    if at:
        facts |= {"model": model, "provider": provider}
    return {**facts, "contextItems": [], "activeRules": []}


def is_picture(part: Part) -> bool:
    return part.get("type") == "file" and str(part.get("mediaType", "")).startswith("image/")


def _user(message: Message, left: list[Part]) -> Iterator[JsonObject]:
    pieces = [
        f"![image]({part.get('url', '')})" if is_picture(part) else str(part.get("text", "")) for part in message.parts if _shown(part)
    ]
    record: JsonObject = {"role": "user", "content": "".join(pieces)}
    ghost, others = ghost_block(message.parts, message.metadata)
    left += others
    yield {**record, "metadata": {"last_ghost_block": ghost}} if ghost is not None else record


def _shown(part: Part) -> bool:
    return part.get("type") == "text" or is_picture(part)


def _others(message: Message, left: list[Part]) -> Iterator[JsonObject]:
    left += (part for part in message.parts if part.get("type") == "file")
    if message.role == "system":
        yield {"role": "system", "content": text_of(message.parts)}
        return
    for step in model_calls(message):
        record: JsonObject = {"role": "assistant", "content": step.text or (None if step.calls else "")}
        if step.calls:
            record["tool_calls"] = [_call(call) for call in step.calls]
        if thought := "\n\n".join(str(part.get("text", "")) for part in step.reasoning if part.get("text")):
            record["reasoning_content"] = thought
        yield record
        for call in step.calls:
            if is_settled(call):
                yield {"role": "tool", "tool_call_id": str(call.get("toolCallId")), "name": tool_name(call), "content": output_text(call)}


def _call(call: Part) -> JsonObject:
    value = call.get("input")
    arguments = value if isinstance(value, str) else dumps(value).decode()
    return {"id": str(call.get("toolCallId")), "type": "function", "function": {"name": tool_name(call), "arguments": arguments}}
