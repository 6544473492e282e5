"""Messages in the shape of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator

from moot.formats._steps import Step, output_text, records_of
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation
from moot.types.part import Part, is_settled, tool_name

__all__ = ["request"]


def request(exported: ExportedConversation) -> JsonObject:
    """Return the active branch as the `messages` of a request, with title and model."""
    conversation = exported.conversation
    about: JsonObject = {"id": conversation.id, "title": conversation.title, "model": conversation.model}
    messages = records_of(exported.messages, _content, _step)
    return {**{name: value for name, value in about.items() if value}, "messages": list[Json](messages)}


def _step(step: Step, alone: bool) -> Iterator[JsonObject]:
    """Yield a model call, then an output for each of its tool calls."""
    thoughts = "\n\n".join(str(part["text"]) for part in step.reasoning if part.get("text"))
    if thoughts or step.text or step.calls or alone:
        record: JsonObject = {"role": "assistant", "content": step.text if step.text or not step.calls else None}
        if thoughts:
            record["reasoning_content"] = thoughts
        if step.calls:
            record["tool_calls"] = [_call(call) for call in step.calls]
        yield record
    for call in step.calls:
        if is_settled(call):
            yield {"role": "tool", "tool_call_id": str(call.get("toolCallId", "")), "content": output_text(call)}


def _call(call: Part) -> JsonObject:
    function: JsonObject = {"name": tool_name(call), "arguments": dumps(call.get("input") or {}).decode()}
    return {"id": str(call.get("toolCallId", "")), "type": "function", "function": function}


def _content(parts: tuple[Part, ...]) -> Json:
    """Return text if there are no files, otherwise pieces."""
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    files = [part for part in parts if part.get("type") == "file"]
    if not files:
        return "".join(texts)
    pieces: list[Json] = []
    for part in parts:
        if part.get("type") == "text":
            pieces.append({"type": "text", "text": part.get("text", "")})
        elif part.get("type") == "file":
            pieces.append(_file(part))
    return pieces


def _file(part: Part) -> JsonObject:
    url = part.get("url", "")
    if str(part.get("mediaType", "")).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    file: JsonObject = {"file_data": url}
    if part.get("filename"):
        file["filename"] = part["filename"]
    return {"type": "file", "file": file}
