"""The format `openai`: messages in the shape of OpenAI's chat completions (reference: OpenAI API, create chat completion; fine-tuning).

A JSON array of messages, an object with `messages`, or JSON Lines of either. A line `{"messages": […]}` is a conversation of its own, as in
fine-tuning files; lines with single messages form one conversation. Messages with text only, which could also be `anthropic`, are
recognized as this format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from moot.formats._documents import Document, broken, documents, facts_of, glance
from moot.formats._saying import Output, Said, call, entries_of, file, output_value, reasoning
from moot.formats._source.fields import objects, text
from moot.formats._writing import fidelity_of, files_of_agents
from moot.formats.openai_writing import request
from moot.types.canonical import Json, JsonObject, dumps, loads_exact
from moot.types.format import ExportedConversation, ImportedConversation, ImportedFacts, ImportedRecord, Keeping, Written
from moot.types.message import Role
from moot.types.part import Part, text_part

__all__ = ["OpenAI"]

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
    """`Format`."""

    name = "openai"
    version = 1
    suffix = ".json"
    words = "messages for OpenAI's API and compatible services"
    holds: ClassVar[Mapping[str, Keeping]] = {
        **dict.fromkeys(("messages", "pictures", "files", "titles"), "kept"),
        **dict.fromkeys(("reasoning", "tool calls"), "approximated"),
    }

    def sniff(self, path: Path, head: bytes) -> bool:
        seen = glance(head)
        if seen is None or not seen.messages or "anthropic_version" in seen.about:
            return False
        if "system" in seen.about or isinstance(seen.about.get("created"), str):  # Anthropic's requests, and programs with similar messages
            return False
        return all(_is_message(message) for message in seen.messages[:-1]) and _is_message(seen.messages[-1], cut=len(head) >= 1 << 16)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for document in documents(path):
            yield ImportedConversation(document.id, entries_of(_said(document)))

    def write(self, exported: ExportedConversation) -> Written:
        return Written(dumps(request(exported)) + b"\n", fidelity_of(exported, self.holds, *files_of_agents(exported)))


def _is_message(value: JsonObject, *, cut: bool = False) -> bool:
    """Return whether the value can only be a message of this format. Less of a truncated message is checked."""
    if value.get("role") not in _ROLES or "parts" in value or "timestamp" in value or "type" in value:
        return False
    content = value.get("content")
    if isinstance(content, list):
        return all(text(piece, "type") in _PIECES for piece in content)
    return (
        isinstance(content, str) or cut or (content is None and ("tool_calls" in value or "function_call" in value or "content" in value))
    )


def _said(document: Document) -> Iterator[Said | ImportedRecord | ImportedFacts]:
    yield facts_of(document.about)
    if document.about:
        yield ImportedRecord(document.around, document.about)
    for number, record in enumerate(document.records, 1):
        value = record.value
        role = _ROLES.get(text(value, "role"))
        if value is None or role is None or record.problem:
            yield broken(record)
        else:
            yield _message(str(number), role, record.raw, value)


def _message(id: str, role: Role, raw: bytes, value: JsonObject) -> Said:
    if value.get("role") in ("tool", "function"):
        name = text(value, "name")
        return Said(id, role, raw, outputs=(Output(text(value, "tool_call_id") or name, _output(value), name=name),))
    parts = [reasoning(text(value, name)) for name in _THOUGHTS if text(value, name)][:1]
    parts += _content(value.get("content"))
    if text(value, "refusal"):
        parts.append(text_part(text(value, "refusal")))
    parts += [_call(one) for one in objects(value, "tool_calls")]
    if isinstance(old := value.get("function_call"), dict):
        parts.append(call(text(old, "name"), text(old, "name"), _arguments(text(old, "arguments"))))
    return Said(id, role, raw, tuple(parts))


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
    tool_part = call(text(value, "id"), text(value, kind, "name"), _arguments(arguments) if kind == "function" else arguments)
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
