"""Conversations as snapshots of version 1.0."""

from __future__ import annotations

from collections.abc import Iterator

import moot
from moot.formats._steps import Step, data_of, model_calls, output_text, pretty, weaker
from moot.formats._writing import fidelity_of
from moot.types.canonical import Json, JsonObject
from moot.types.format import ExportedConversation, Keeping, Written
from moot.types.message import Message
from moot.types.part import Part, is_settled, text_of, tool_name

__all__ = ["HOLDS", "snapshot"]

HOLDS: dict[str, Keeping] = dict.fromkeys(("messages", "titles", "times", "tool calls", "pictures", "files"), "kept")


def snapshot(exported: ExportedConversation) -> Written:
    """Write a complete snapshot, including data that TalkCody omits when sharing, such as shell output."""
    conversation = exported.conversation
    messages = [record for message in exported.messages for record in _records(message)]
    task: JsonObject = {"id": conversation.id, "title": conversation.title, "createdAt": conversation.created_at}
    task |= {"messageCount": len(messages)} | ({"model": conversation.model} if conversation.model else {})
    about: JsonObject = {"sharedAt": conversation.updated_at, "talkcodyVersion": f"moot {moot.__version__}", "platform": "linux"}
    value: JsonObject = {"version": "1.0", "task": task, "messages": list[Json](messages), "metadata": about}
    instructions = sum(message.role == "system" for message in exported.messages)
    return Written(pretty(value), weaker(fidelity_of(exported, HOLDS, weak=_denied), "messages", instructions))


def _denied(part: Part) -> bool:
    """Return whether a call was denied. TalkCody can only store it as failed."""
    return part.get("state") == "output-denied"


def _records(message: Message) -> Iterator[JsonObject]:
    """Yield one record with its own id for each model call, tool call and output."""
    if message.role != "assistant":
        role = "user" if message.role == "user" else "assistant"  # TalkCody has no other
        files = [part for part in message.parts if part.get("type") == "file"]
        yield _record(message, message.id, role, text_of(message.parts)) | _attachments(message.id, files)
        return
    number = 0
    for step in model_calls(message):
        for role, content, files in _pieces(step):
            id = f"{message.id}:{number}" if number else message.id
            yield _record(message, id, role, content) | _attachments(id, files)
            number += 1


def _pieces(step: Step) -> Iterator[tuple[str, Json, list[Part]]]:
    if step.text or step.files:
        yield "assistant", step.text, step.files
    for call in step.calls:
        about: JsonObject = {"toolCallId": str(call.get("toolCallId")), "toolName": tool_name(call)}
        yield "tool", [{"type": "tool-call", **about, "input": call.get("input")}], []
        if is_settled(call):
            failure: JsonObject = {"success": False, "error": output_text(call)}
            output = call.get("output") if call.get("state") == "output-available" else failure
            yield "tool", [{"type": "tool-result", **about, "output": output}], []


def _record(message: Message, id: str, role: str, content: Json) -> JsonObject:
    return {"id": id, "role": role, "content": content, "timestamp": message.created_at}


def _attachments(id: str, files: list[Part]) -> JsonObject:
    attached: list[Json] = []
    for number, part in enumerate(files):
        kind = str(part.get("mediaType", ""))
        about: JsonObject = {"id": f"{id}:file-{number}", "type": "image" if kind.startswith("image/") else "file"}
        data = data_of(part)
        about |= {"filename": str(part.get("filename") or ""), "mimeType": kind, "size": len(data) if data is not None else 0}
        attached.append({**about, "url": part.get("url")})
    return {"attachments": attached} if attached else {}
