"""Read and write snapshots of version 1.0. Nested tool calls are read as child conversations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import moot
from moot.convert.files.attachments import decode_data_url
from moot.errors import UsageError
from moot.formats.apps.talkcody.database import Record, Rows
from moot.formats.kit.answers import Turns
from moot.formats.kit.fidelity import fidelity_of
from moot.formats.kit.fields import milliseconds, objects, text
from moot.formats.kit.json import Element, PartialDocument, load_document
from moot.formats.kit.steps import Step, approximate, model_calls, output_text, pretty_bytes
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts
from moot.types.message import Message, Part, is_settled, text_of, tool_name

_DEEPEST = 8
"""Maximum depth of nested tool calls."""


def read_snapshot(path: Path) -> Iterator[ImportedConversation]:
    """Read a snapshot. Raise UsageError if the file is not a snapshot or has an unknown version."""
    found = load_document(path)
    task = PartialDocument(found.raw("task"))
    if not task.text("id") or "messages" not in found:
        raise UsageError(f"{str(path)!r} is not a TalkCody snapshot.")
    if (version := found.text("version")) and version.partition(".")[0] != "1":
        raise UsageError(f"{str(path)!r} has the unsupported snapshot version {version!r}. Supported: 1.0.")
    yield from _conversations(found, "messages", task.text("id"), task, None, None, 0)


def _conversations(
    found: PartialDocument, name: str, id: str, task: PartialDocument, parent: str | None, call: str | None, depth: int
) -> Iterator[ImportedConversation]:
    nested: list[tuple[str, PartialDocument]] = []
    yield ImportedConversation(id, _entries(found, name, task, nested), parent, call)
    for number, (inner, holder) in enumerate(nested, 1):
        if depth < _DEEPEST:
            yield from _conversations(holder, "nestedTools", f"{id}/{inner or number}", PartialDocument(b""), id, inner or None, depth + 1)


def _entries(found: PartialDocument, name: str, task: PartialDocument, nested: list[tuple[str, PartialDocument]]) -> Iterator[Entry]:
    turns = Turns()
    reader = Rows(turns)
    for element in found.elements(name):
        if element.value is None:
            yield turns.broken(element.raw, element.problem, lead=element.lead)
            continue
        yield from reader.take(_read_record(element, element.value))
        if element.value.get("nestedTools"):
            call = next((str(one.get("toolCallId") or "") for one in objects(element.value, "content")), "")
            nested.append((call, PartialDocument(element.raw)))
    yield from reader.end()
    if not found.whole:
        yield turns.broken(b"", "the file is truncated")
    turns.tally.kept["titles"] += bool(task.text("title"))
    yield ImportedFacts(
        turns.tally.fidelity(), title=task.text("title"), model=task.text("model"), created_at=milliseconds(task.value("createdAt"))
    )


def _read_record(element: Element, value: JsonObject) -> Record:
    files = [part for one in objects(value.get("attachments")) if (part := _file(one)) is not None]
    return Record(
        str(value.get("id") or element.number),
        str(value.get("role")),
        value.get("content"),
        element.raw,
        element.lead,
        milliseconds(value.get("timestamp")),
        files=tuple(files),
    )


def _file(value: JsonObject) -> Part | None:
    kind, url, preview = str(value.get("mimeType") or "application/octet-stream"), text(value, "url"), text(value, "preview")
    if not url.startswith(("data:", "https:", "http:")):
        if not preview:
            return None
        url = preview if preview.startswith("data:") else f"data:{kind};base64,{preview}"
    return {"type": "file", "mediaType": kind, "url": url, "filename": str(value.get("filename") or "")}


HOLDS: dict[str, FidelityLevel] = dict.fromkeys(("messages", "titles", "times", "tool calls", "pictures", "files"), "kept")


def snapshot(exported: ExportedConversation) -> ExportFile:
    """Write a complete snapshot, including data that TalkCody omits when sharing, such as shell output."""
    conversation = exported.conversation
    messages = [record for message in exported.messages for record in _records(message)]
    task: JsonObject = {"id": conversation.id, "title": conversation.title, "createdAt": conversation.created_at}
    task |= {"messageCount": len(messages)} | ({"model": conversation.model} if conversation.model else {})
    about: JsonObject = {"sharedAt": conversation.updated_at, "talkcodyVersion": f"moot {moot.__version__}", "platform": "linux"}
    value: JsonObject = {"version": "1.0", "task": task, "messages": list[Json](messages), "metadata": about}
    instructions = sum(message.role == "system" for message in exported.messages)
    # TalkCody can only store a denied call as failed
    fidelity = fidelity_of(exported, HOLDS, weak=lambda part: part.get("state") == "output-denied")
    return ExportFile(pretty_bytes(value), approximate(fidelity, "messages", instructions))


def _records(message: Message) -> Iterator[JsonObject]:
    """Yield one record with its own id for each model call, tool call and output."""
    if message.role != "assistant":
        role = "user" if message.role == "user" else "assistant"  # TalkCody has no other roles
        files = [part for part in message.parts if part.get("type") == "file"]
        yield _write_record(message, message.id, role, text_of(message.parts), files)
        return
    number = 0
    for step in model_calls(message):
        for role, content, files in _pieces(step):
            id = f"{message.id}:{number}" if number else message.id
            yield _write_record(message, id, role, content, files)
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


def _write_record(message: Message, id: str, role: str, content: Json, files: list[Part]) -> JsonObject:
    attached: list[Json] = []
    for number, part in enumerate(files):
        kind = str(part.get("mediaType", ""))
        about: JsonObject = {"id": f"{id}:file-{number}", "type": "image" if kind.startswith("image/") else "file"}
        data = decode_data_url(part)
        about |= {"filename": str(part.get("filename") or ""), "mimeType": kind, "size": len(data) if data is not None else 0}
        attached.append({**about, "url": part.get("url")})
    record: JsonObject = {"id": id, "role": role, "content": content, "timestamp": message.created_at}
    return {**record, "attachments": attached} if attached else record
