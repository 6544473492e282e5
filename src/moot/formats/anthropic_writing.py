"""Messages in the shape of Anthropic's API."""

from __future__ import annotations

from collections.abc import Iterator

from moot.formats._steps import Step, output_text, records_of
from moot.types.canonical import Json, JsonObject
from moot.types.format import ExportedConversation
from moot.types.part import Part, is_settled, text_of, tool_name

__all__ = ["request"]


def request(exported: ExportedConversation) -> JsonObject:
    """Return the active branch as the body of a request. Leading instructions become `system`."""
    conversation, messages = exported.conversation, list(exported.messages)
    system = text_of(messages.pop(0).parts) if messages and messages[0].role == "system" else ""
    about: JsonObject = {"id": conversation.id, "title": conversation.title, "model": conversation.model}
    records = records_of(messages, _content, _step)
    return {**{name: value for name, value in about.items() if value}, "system": system, "messages": list[Json](records)}


def _step(step: Step, alone: bool) -> Iterator[JsonObject]:
    """Yield a model call, then its tool outputs as a user message."""
    blocks: list[Json] = [block for part in step.reasoning for block in _thought(part)]
    if step.text or (alone and not step.calls and not blocks):
        blocks.append({"type": "text", "text": step.text})
    blocks += [_call(call) for call in step.calls]
    if blocks:
        yield {"role": "assistant", "content": blocks}
    outputs: list[Json] = [_output(call) for call in step.calls if is_settled(call)]
    if outputs:
        yield {"role": "user", "content": outputs}


def _call(call: Part) -> JsonObject:
    return {"type": "tool_use", "id": call.get("toolCallId", ""), "name": tool_name(call), "input": call.get("input")}


def _thought(part: Part) -> Iterator[JsonObject]:
    """Yield a reasoning block. Only Anthropic's own signatures are included."""
    metadata = part.get("providerMetadata")
    own = metadata.get("anthropic") if isinstance(metadata, dict) else None
    sealed = own if isinstance(own, dict) else {}
    if isinstance(data := sealed.get("redactedData"), str):
        yield {"type": "redacted_thinking", "data": data}
    elif part.get("text"):
        signature = sealed.get("signature")
        yield {"type": "thinking", "thinking": part["text"], **({"signature": signature} if isinstance(signature, str) else {})}


def _output(call: Part) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call.get("toolCallId", ""), "content": output_text(call)}
    return block if call.get("state") == "output-available" else {**block, "is_error": True}


def _content(parts: tuple[Part, ...]) -> Json:
    """Return text if there are no files, otherwise blocks."""
    if not any(part.get("type") == "file" for part in parts):
        return text_of(parts)
    blocks: list[Json] = []
    for part in parts:
        if part.get("type") == "text" and part.get("text"):
            blocks.append({"type": "text", "text": part["text"]})
        elif part.get("type") == "file":
            blocks.append(_file(part))
    return blocks


def _file(part: Part) -> JsonObject:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    kind = "image" if media_type.startswith("image/") else "document"
    head, _, data = url.partition(",")
    is_data = head.startswith("data:") and head.endswith(";base64")
    source: JsonObject = {"type": "base64", "media_type": media_type, "data": data} if is_data else {"type": "url", "url": url}
    block: JsonObject = {"type": kind, "source": source}
    return {**block, "title": part["filename"]} if kind == "document" and part.get("filename") else block
