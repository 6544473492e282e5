"""The format `openai`: messages in the form of OpenAI's chat completions (reference: OpenAI API, create chat completion; fine-tuning).

A file contains a JSON array of messages, an object with `messages`, or JSON Lines of either. A line `{"messages": […]}` is a separate
conversation, as in fine-tuning files; lines with single messages form one conversation. Text-only messages, which could also be
`anthropic`, are recognized as this format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from moot.formats.kit.documents import Document, documents, facts_of, peek, unreadable
from moot.formats.kit.fidelity import assistant_files, fidelity_of
from moot.formats.kit.fields import objects, text
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, output_value, reasoning, tool_call
from moot.formats.kit.steps import Step, function_call, output_text, records_of
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedRecord
from moot.types.message import Part, Role, is_settled, text_of, text_part


def _request(exported: ExportedConversation) -> JsonObject:
    """Return the active branch as the `messages` of a request, together with title and model."""
    conversation = exported.conversation
    about: JsonObject = {"id": conversation.id, "title": conversation.title, "model": conversation.model}
    messages = records_of(exported.messages, _write_content, _write_step)
    return {**{name: value for name, value in about.items() if value}, "messages": list[Json](messages)}


def _write_step(step: Step, alone: bool) -> Iterator[JsonObject]:
    """Yield a model call, followed by an output for each of its tool calls."""
    if step.thought or step.text or step.calls or alone:
        record: JsonObject = {"role": "assistant", "content": step.text if step.text or not step.calls else None}
        if step.thought:
            record["reasoning_content"] = step.thought
        if step.calls:
            record["tool_calls"] = [function_call({**call, "input": dumps(call.get("input") or {}).decode()}) for call in step.calls]
        yield record
    for call in step.calls:
        if is_settled(call):
            yield {"role": "tool", "tool_call_id": str(call.get("toolCallId", "")), "content": output_text(call)}


def _write_content(parts: tuple[Part, ...]) -> Json:
    """Return the content of a prompt: text, or a list of content parts if there are files."""
    if not any(part.get("type") == "file" for part in parts):
        return text_of(parts)
    return [
        {"type": "text", "text": part.get("text", "")} if part["type"] == "text" else _write_file(part)
        for part in parts
        if part.get("type") in ("text", "file")
    ]


def _write_file(part: Part) -> JsonObject:
    url = part.get("url", "")
    if str(part.get("mediaType", "")).startswith("image/"):
        detail: JsonObject = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    named: JsonObject = {"filename": part["filename"]} if part.get("filename") else {}
    return {"type": "file", "file": {"file_data": url, **named}}


_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    "user": "user",
    **dict.fromkeys(("assistant", "tool", "function"), "assistant"),
}
_PIECES = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
_THOUGHTS = ("reasoning_content", "reasoning")
_SOUND = {"mp3": "audio/mpeg", "wav": "audio/wav"}


class OpenAI:
    name = "openai"
    version = 2
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
        if "system" in seen.about or isinstance(
            seen.about.get("created"), str
        ):  # requests to Anthropic, and programs with similar messages
            return False
        if any("message_id" in message for message in seen.messages[:2]):  # a program's own log
            return False
        return all(_is_message(message) for message in seen.messages[:-1]) and _is_message(seen.messages[-1], cut=len(head) >= 1 << 16)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for document in documents(path):
            yield ImportedConversation(document.id, entries_of(_records(document)))

    def write(self, exported: ExportedConversation) -> ExportFile:
        return ExportFile(dumps(_request(exported)) + b"\n", fidelity_of(exported, self.holds, *assistant_files(exported)))


def _is_message(value: JsonObject, *, cut: bool = False) -> bool:
    """Return whether the value can't be anything but a message of this format. A truncated message is checked less strictly."""
    if value.get("role") not in _ROLES or "parts" in value or "timestamp" in value or "type" in value:
        return False
    content = value.get("content")
    if isinstance(content, list):
        return all(text(piece, "type") in _PIECES for piece in content)
    return (
        isinstance(content, str) or cut or (content is None and ("tool_calls" in value or "function_call" in value or "content" in value))
    )


def _records(document: Document) -> Records:
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
        content = value.get("content")
        output = content if isinstance(content, str) else output_value(_content(content))
        return SessionRecord(id, role, raw, outputs=(Output(text(value, "tool_call_id") or name, output, name=name),))
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
    return [_piece(piece) for piece in objects(content)]


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
