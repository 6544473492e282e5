"""The format `openai`: messages in the shape of OpenAI's chat completions (reference: OpenAI API, create chat completion; fine-tuning).

A JSON array of messages, an object with `messages`, or JSON Lines of either. A line `{"messages": […]}` is a conversation of its own, as in
fine-tuning files; lines with single messages form one conversation. Messages with text only, which could also be `anthropic`, are
recognized as this format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from moot.formats.kit.documents import Document, documents, facts_of, peek, unreadable
from moot.formats.kit.fidelity import assistant_files, fidelity_of
from moot.formats.kit.fields import objects, text
from moot.formats.kit.records import Output, SessionRecord, entries_of, file, output_value, reasoning, tool_call
from moot.formats.kit.steps import Step, output_text, records_of
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, is_settled, text_part, tool_name

__all__ = ["OpenAI", "_request"]


def _request(exported: ExportedConversation) -> JsonObject:
    """Return the active branch as the `messages` of a request, with title and model."""
    conversation = exported.conversation
    about: JsonObject = {"id": conversation.id, "title": conversation.title, "model": conversation.model}
    messages = records_of(exported.messages, _write_content, _write_step)
    return {**{name: value for name, value in about.items() if value}, "messages": list[Json](messages)}


def _write_step(step: Step, alone: bool) -> Iterator[JsonObject]:
    """Yield a model call, then an output for each of its tool calls."""
    thoughts = "\n\n".join(str(part["text"]) for part in step.reasoning if part.get("text"))
    if thoughts or step.text or step.calls or alone:
        record: JsonObject = {"role": "assistant", "content": step.text if step.text or not step.calls else None}
        if thoughts:
            record["reasoning_content"] = thoughts
        if step.calls:
            record["tool_calls"] = [_write_call(call) for call in step.calls]
        yield record
    for call in step.calls:
        if is_settled(call):
            yield {"role": "tool", "tool_call_id": str(call.get("toolCallId", "")), "content": output_text(call)}


def _write_call(call: Part) -> JsonObject:
    function: JsonObject = {"name": tool_name(call), "arguments": dumps(call.get("input") or {}).decode()}
    return {"id": str(call.get("toolCallId", "")), "type": "function", "function": function}


def _write_content(parts: tuple[Part, ...]) -> Json:
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
            pieces.append(_write_file(part))
    return pieces


def _write_file(part: Part) -> JsonObject:
    url = part.get("url", "")
    if str(part.get("mediaType", "")).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    file: JsonObject = {"file_data": url}
    if part.get("filename"):
        file["filename"] = part["filename"]
    return {"type": "file", "file": file}


_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "assistant",
    "function": "assistant",
}
_PIECES = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
_THOUGHTS = ("reasoning_content", "reasoning")
_SOUND = {"mp3": "audio/mpeg", "wav": "audio/wav"}


class OpenAI:
    """Implementation of `Format`."""

    name = "openai"
    version = 1
    suffix = ".json"
    words = "messages for OpenAI's API and compatible services"
    holds: ClassVar[Mapping[str, FidelityLevel]] = {
        **dict.fromkeys(("messages", "pictures", "files", "titles"), "kept"),
        **dict.fromkeys(("reasoning", "tool calls"), "approximated"),
    }

    def sniff(self, path: Path, head: bytes) -> bool:
        seen = peek(head)
        if seen is None or not seen.messages or "anthropic_version" in seen.about:
            return False
        if "system" in seen.about or isinstance(seen.about.get("created"), str):  # Anthropic's requests, and programs with similar messages
            return False
        return all(_is_message(message) for message in seen.messages[:-1]) and _is_message(seen.messages[-1], cut=len(head) >= 1 << 16)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for document in documents(path):
            yield ImportedConversation(document.id, entries_of(_records(document)))

    def write(self, exported: ExportedConversation) -> ExportFile:
        return ExportFile(dumps(_request(exported)) + b"\n", fidelity_of(exported, self.holds, *assistant_files(exported)))


def _is_message(value: JsonObject, *, cut: bool = False) -> bool:
    """Return whether the value can only be a message of this format. A truncated message is checked less strictly."""
    if value.get("role") not in _ROLES or "parts" in value or "timestamp" in value or "type" in value:
        return False
    content = value.get("content")
    if isinstance(content, list):
        return all(text(piece, "type") in _PIECES for piece in content)
    return (
        isinstance(content, str) or cut or (content is None and ("tool_calls" in value or "function_call" in value or "content" in value))
    )


def _records(document: Document) -> Iterator[SessionRecord | ImportedRecord | ImportedFacts]:
    yield facts_of(document.about)
    if document.about:
        yield ImportedRecord(document.around, document.about)
    for number, record in enumerate(document.records, 1):
        value = record.value
        role = _ROLES.get(text(value, "role"))
        if value is None or role is None or record.problem:
            yield unreadable(record)
        else:
            yield _message(str(number), role, record.raw, value)


def _message(id: str, role: Role, raw: bytes, value: JsonObject) -> SessionRecord:
    if value.get("role") in ("tool", "function"):
        name = text(value, "name")
        return SessionRecord(id, role, raw, outputs=(Output(text(value, "tool_call_id") or name, _output(value), name=name),))
    parts = [reasoning(text(value, name)) for name in _THOUGHTS if text(value, name)][:1]
    parts += _content(value.get("content"))
    if text(value, "refusal"):
        parts.append(text_part(text(value, "refusal")))
    parts += [_call(one) for one in objects(value, "tool_calls")]
    if isinstance(old := value.get("function_call"), dict):
        parts.append(tool_call(text(old, "name"), text(old, "name"), _arguments(text(old, "arguments"))))
    return SessionRecord(id, role, raw, tuple(parts))


def _content(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [_piece(piece) for piece in objects({"all": content}, "all")]


def _piece(piece: JsonObject) -> Part:
    match piece.get("type"):
        case "text" | "refusal":
            return text_part(text(piece, str(piece["type"])))
        case "image_url":
            url = text(piece, "image_url", "url") or text(piece, "image_url")
            shown = file(url, "" if url.startswith("data:") else "image/*")
            return {**shown, "detail": detail} if (detail := text(piece, "image_url", "detail")) else shown
        case "input_audio":
            kind = _SOUND.get(text(piece, "input_audio", "format"), "audio/wav")
            return file(f"data:{kind};base64,{text(piece, 'input_audio', 'data')}", kind)
        case "file" if url := text(piece, "file", "file_data"):
            return file(url if url.startswith("data:") else f"data:application/pdf;base64,{url}", "", text(piece, "file", "filename"))
        case _:
            return {"type": "data-piece", "data": piece}


def _call(value: JsonObject) -> Part:
    kind = "custom" if "custom" in value else "function"
    arguments = text(value, kind, "arguments" if kind == "function" else "input")
    tool_part = tool_call(text(value, "id"), text(value, kind, "name"), _arguments(arguments) if kind == "function" else arguments)
    return {**tool_part, "toolMetadata": {"custom": True}} if kind == "custom" else tool_part


def _arguments(written: str) -> Json:
    try:
        return loads_exact(written) if written.strip() else {}
    except ValueError:
        return written


def _output(value: JsonObject) -> Json:
    content = value.get("content")
    if isinstance(content, str):
        return content
    return output_value(_content(content))
