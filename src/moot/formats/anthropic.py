"""The format `anthropic`: messages in the form of Anthropic's API (reference: Claude API, create a message).

Messages are in a JSON array, in an object's `messages`, or in JSON Lines. A file is recognized if it also has `system` or contains a block
that exists only in Anthropic's API. moot always writes `system`, because text-only messages would otherwise be recognized as `openai`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from moot.formats.kit.documents import Document, documents, facts_of, peek, unreadable
from moot.formats.kit.fidelity import assistant_files, fidelity_of
from moot.formats.kit.fields import flag, items, obj, objects, text
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, output_value, reasoning, tool_call
from moot.formats.kit.steps import Step, output_text, records_of
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedRecord
from moot.types.message import Part, Role, is_settled, text_of, text_part, tool_name


def _request(exported: ExportedConversation) -> JsonObject:
    """Return the active branch as the body of a request. A system message at the beginning becomes `system`."""
    conversation, messages = exported.conversation, list(exported.messages)
    system = text_of(messages.pop(0).parts) if messages and messages[0].role == "system" else ""
    about: JsonObject = {"id": conversation.id, "title": conversation.title, "model": conversation.model}
    records = records_of(messages, _write_content, _write_step)
    return {**{name: value for name, value in about.items() if value}, "system": system, "messages": list[Json](records)}


def _write_step(step: Step, alone: bool) -> Iterator[JsonObject]:
    """Yield a model call, followed by its tool outputs as a user message."""
    blocks: list[Json] = [block for part in step.reasoning for block in _write_reasoning(part)]
    if step.text or (alone and not step.calls and not blocks):
        blocks.append({"type": "text", "text": step.text})
    for call in step.calls:
        blocks.append({"type": "tool_use", "id": call.get("toolCallId", ""), "name": tool_name(call), "input": call.get("input")})
    if blocks:
        yield {"role": "assistant", "content": blocks}
    outputs: list[Json] = [_write_output(call) for call in step.calls if is_settled(call)]
    if outputs:
        yield {"role": "user", "content": outputs}


def _write_reasoning(part: Part) -> Iterator[JsonObject]:
    """Yield a reasoning block. Only Anthropic's own signatures are included."""
    sealed = obj(part, "providerMetadata", "anthropic")
    if isinstance(data := sealed.get("redactedData"), str):
        yield {"type": "redacted_thinking", "data": data}
    elif part.get("text"):
        signature = sealed.get("signature")
        yield {"type": "thinking", "thinking": part["text"], **({"signature": signature} if isinstance(signature, str) else {})}


def _write_output(call: Part) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call.get("toolCallId", ""), "content": output_text(call)}
    return block if call.get("state") == "output-available" else {**block, "is_error": True}


def _write_content(parts: tuple[Part, ...]) -> Json:
    """Return the content of a prompt: text, or a list of content blocks if there are files."""
    if not any(part.get("type") == "file" for part in parts):
        return text_of(parts)
    blocks: list[Json] = []
    for part in parts:
        if part.get("type") == "text" and part.get("text"):
            blocks.append({"type": "text", "text": part["text"]})
        elif part.get("type") == "file":
            blocks.append(_write_file(part))
    return blocks


def _write_file(part: Part) -> JsonObject:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    kind = "image" if media_type.startswith("image/") else "document"
    head, _, data = url.partition(",")
    is_data = head.startswith("data:") and head.endswith(";base64")
    source: JsonObject = {"type": "base64", "media_type": media_type, "data": data} if is_data else {"type": "url", "url": url}
    block: JsonObject = {"type": kind, "source": source}
    return {**block, "title": part["filename"]} if kind == "document" and part.get("filename") else block


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_OWN = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use", "search_result"})


class Anthropic:
    name = "anthropic"
    version = 2
    suffix = ".json"
    words = "messages for Anthropic's API and compatible services"
    holds: ClassVar[Mapping[str, FidelityLevel]] = {
        **dict.fromkeys(("messages", "pictures", "files", "titles"), "kept"),
        **dict.fromkeys(("reasoning", "signatures", "tool calls"), "approximated"),
    }

    def sniff(self, path: Path, head: bytes) -> bool:
        seen = peek(head)
        if seen is None or not seen.messages:
            return False
        if str(seen.about.get("id", "")).startswith("T-"):  # a thread of another program with similar messages
            return False
        messages = [one for one in seen.messages if "role" in one]
        if not messages or not all(_is_message(one) for one in messages):
            return False
        named = "anthropic_version" in seen.about or ("system" in seen.about and isinstance(seen.about["system"], str | list))
        return named or any(text(block, "type") in _OWN for one in messages for block in items(one, "content"))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for document in documents(path):
            yield ImportedConversation(document.id, entries_of(_records(document)))

    def write(self, exported: ExportedConversation) -> ExportFile:
        return ExportFile(dumps(_request(exported)) + b"\n", fidelity_of(exported, self.holds, *assistant_files(exported)))


def _is_message(value: JsonObject) -> bool:
    if value.get("role") not in _ROLES or "tool_calls" in value or "timestamp" in value or "parts" in value:
        return False
    content = value.get("content")
    return not isinstance(content, list) or all(isinstance(block, dict) and "image_url" not in block for block in content)


def _records(document: Document) -> Records:
    yield facts_of(document.about)
    if document.about:
        yield ImportedRecord(document.around, document.about)
    system = document.about.get("system")
    if system and not isinstance(system, str | list):
        yield ImportedRecord(b"", system, "'system' has an unknown shape")
    if parts := content_parts(system):
        yield SessionRecord("system", "system", document.around, tuple(parts))
    for number, record in enumerate(document.records, 1):
        role = _ROLES.get(text(record.value, "role"))
        if record.value is None or role is None or record.problem:
            yield unreadable(record)
        else:
            yield from _message(str(number), role, record.raw, record.value)


def _message(id: str, role: Role, raw: bytes, value: JsonObject) -> Iterator[SessionRecord]:
    """Yield the message. Tool outputs in a user message belong to the preceding answer; its other content is a prompt."""
    blocks = objects(value, "content")
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if role == "user" and results:
        outputs = tuple(Output(text(one, "tool_use_id"), output_of(one), flag(one, "is_error")) for one in results)
        yield SessionRecord(f"{id}.outputs", "assistant", raw, outputs=outputs)
        blocks = [block for block in blocks if block.get("type") != "tool_result"]
        if not blocks:
            return
    parts = content_parts(list[Json](blocks)) if blocks else content_parts(value.get("content"))
    outputs = tuple(Output(text(one, "tool_use_id"), one.get("content")) for one in blocks if _is_server_result(one))
    yield SessionRecord(id, role, raw, tuple(parts), outputs)


def content_parts(content: Json) -> list[Part]:
    """Return the parts of a message's content: text or a list of content blocks."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [_block(block) for block in objects(content) if not _is_server_result(block)]


def _block(block: JsonObject) -> Part:
    match block.get("type"):
        case "text":
            part = text_part(text(block, "text"))
            return {**part, "providerMetadata": {"anthropic": {"citations": block["citations"]}}} if block.get("citations") else part
        case "thinking":
            signature = text(block, "signature")
            return reasoning(text(block, "thinking"), {"anthropic": {"signature": signature}} if signature else None)
        case "redacted_thinking":
            return reasoning("", {"anthropic": {"redactedData": text(block, "data")}})
        case "tool_use":
            return tool_call(text(block, "id"), text(block, "name"), block.get("input"))
        case "server_tool_use":
            return {**tool_call(text(block, "id"), text(block, "name"), block.get("input")), "providerExecuted": True}
        case "image" | "document":
            return _source(block)
        case _:
            return {"type": "custom", "kind": "anthropic.block", "providerMetadata": {"anthropic": {"block": block}}}


def _source(block: JsonObject) -> Part:
    kind, name = text(block, "source", "type"), text(block, "title")
    default = "image/*" if block.get("type") == "image" else "application/pdf"
    if kind == "base64":
        media_type = text(block, "source", "media_type") or default
        return file(f"data:{media_type};base64,{text(block, 'source', 'data')}", media_type, name)
    if kind == "url":
        return file(text(block, "source", "url"), default, name)
    if kind == "text":
        return text_part(f"{name}:\n{text(block, 'source', 'data')}" if name else text(block, "source", "data"))
    return {"type": "custom", "kind": "anthropic.block", "providerMetadata": {"anthropic": {"block": block}}}


def _is_server_result(block: JsonObject) -> bool:
    return text(block, "type").endswith("_tool_result")


def output_of(block: JsonObject) -> Json:
    """Return the output in a `tool_result` block."""
    content = block.get("content")
    if isinstance(content, str) or content is None or not any("type" in one for one in objects(content)):
        return content
    return output_value(content_parts(content), "\n")
