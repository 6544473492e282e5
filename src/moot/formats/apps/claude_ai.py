"""The format `claude-ai`: the data export of Claude.ai as a zip, an unpacked folder, or `conversations.json` alone.

A conversation has `chat_messages` with content blocks, including tool outputs, and the text of attachments, but not the files. In newer
exports, each message contains the id of its parent, so that the messages form a tree. There is no official description. Reference:
https://whychose.com/seo/claude-conversation-export-format and https://github.com/Sinity/polylogue (docs/providers/claude-ai.md), 2025 and
2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.formats.kit.archives import Export, conversations_of, file_parts, first_conversation
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.documents import missing_messages
from moot.formats.kit.fields import flag, milliseconds, obj, objects, text
from moot.formats.kit.json import ArrayItem, array_items, member
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, finish_reason, reasoning, step, tool_call
from moot.formats.kit.trees import find_branches, sort_tree
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part

_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant", "system": "system"}


class ClaudeAi(ReadOnly):
    name = "claude-ai"
    version = 2
    suffix = ".json"

    def sniff(self, path: Path, head: bytes) -> bool:
        first = first_conversation(path, head)
        return isinstance(first.get("chat_messages"), list) and bool(text(first, "uuid"))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for piece, export in conversations_of(path, "Claude.ai"):
            value = obj(piece.value)
            yield ImportedConversation(text(value, "uuid") or f"conversation-{piece.number}", _entries(piece, value, export))


def _entries(piece: ArrayItem, value: JsonObject, export: Export) -> Iterator[Entry]:
    span = member(piece.raw, "chat_messages")
    around = piece.raw if span is None else piece.raw[: span.begin] + piece.raw[span.end :]
    found = list(array_items([piece.raw[span.begin : span.end]])) if span is not None else []
    linked = any(text(one.value, "parent_message_uuid") for one in found)
    nodes = [(text(one.value, "uuid") or f"message-{one.number}", text(one.value, "parent_message_uuid") or None, one) for one in found]
    placed, _ = sort_tree(nodes)  # the first message's parent is an all-zero id
    tree = find_branches((id, parent, _role(one) is not None) for id, parent, one in placed) if linked else None

    def records() -> Records:
        yield ImportedRecord(around, {name: one for name, one in value.items() if name != "chat_messages"}, piece.problem)
        yield _facts(value)
        yield from () if piece.problem else missing_messages(value, "chat_messages")
        for id, parent, one in placed:
            role = _role(one)
            if role is None:
                yield ImportedRecord(one.raw, one.value, one.problem or f"message {one.number} has no sender")
                continue
            message = obj(one.value)
            parts, missing = _parts(message, export)
            if missing:
                yield ImportedFacts(Fidelity(lost={"files": missing}))
            facts = step(text(message, "model") or text(value, "model"), finish_reason=finish_reason(text(message, "stop_reason")))
            outputs = tuple(_output(block) for block in objects(message, "content") if block.get("type") == "tool_result")
            at = milliseconds(message, "created_at")
            yield SessionRecord(id, role, one.raw, tuple(parts), outputs, parent, at, facts if role == "assistant" else None)

    return entries_of(records(), tree, text(value, "current_leaf_message_uuid") or None)


def _role(piece: ArrayItem) -> Role | None:
    return _ROLES.get(text(piece.value, "sender"))


def _facts(value: JsonObject) -> ImportedFacts:
    return ImportedFacts(
        title=text(value, "name"),
        agent="claude-ai",
        model=text(value, "model"),
        created_at=milliseconds(value, "created_at"),
        updated_at=milliseconds(value, "updated_at"),
        metadata={name: found for name in ("summary", "project_uuid") if (found := text(value, name))},
    )


def _parts(message: JsonObject, export: Export) -> tuple[list[Part], int]:
    """Return the parts, and the number of files missing from the export."""
    blocks = objects(message, "content")
    parts = [part for block in blocks if (part := _block(block)) is not None]
    if not blocks and text(message, "text"):
        parts = [text_part(text(message, "text"))]
    for one in objects(message, "attachments"):
        words = text(one, "extracted_content")
        parts.append(text_part(f"{text(one, 'file_name')}:\n{words}") if words else {"type": "data-file", "data": one})
    requested = [(text(one, "file_uuid"), text(one, "file_name")) for one in objects(message, "files")]
    found = list(file_parts(requested, export))
    return [*parts, *(part for part, _ in found)], sum(not there for _, there in found)


def _block(block: JsonObject) -> Part | None:
    match block.get("type"):
        case "text" | "voice_note":
            return text_part(text(block, "text")) if text(block, "text") else None
        case "thinking":
            return reasoning(text(block, "thinking"))
        case "tool_use":
            name = text(block, "name")
            return tool_call(text(block, "id") or name, name, block.get("input"), title=text(block, "message"))
        case "tool_result":
            return None
        case _:
            return {"type": "data-block", "data": block}


def _output(block: JsonObject) -> Output:
    """Return a tool output. An output without an id belongs to a call with the same tool name."""
    name = text(block, "name")
    content = block.get("content")
    texts = objects(block, "content")
    if isinstance(content, list) and all(one.get("type") == "text" for one in texts):
        content = "\n".join(text(one, "text") for one in texts)
    value: Json = content
    return Output(text(block, "tool_use_id") or name, value, flag(block, "is_error"), name)
