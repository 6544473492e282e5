"""The format `chatgpt`: the data export of ChatGPT as a zip, an unpacked folder, or `conversations.json` alone.

A conversation is a tree of nodes (`mapping`) whose active branch ends at `current_node`. Messages with a recipient are tool calls, and
messages from tools are their outputs. Neither of them contains a call id. There is no official description. Reference:
https://github.com/mitkury/chatgpt-export-parser (docs/chatgpt-data-export-format.md) and
https://difegam.github.io/chatgpt-to-markdown/reference/data-models, 2025 and 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.formats.kit.archives import Export, conversations_of, file_parts, first_conversation
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.documents import missing_messages
from moot.formats.kit.fields import at, flag, items, milliseconds, obj, objects, text
from moot.formats.kit.json import ArrayItem, json_value, members_at
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, finish_reason, output_value, reasoning, step, tool_call
from moot.formats.kit.trees import find_branches, sort_tree
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "assistant", "system": "system"}
_WORDS = ("text", "thoughts", "content", "result", "user_profile", "user_instructions")


class ChatGPT(ReadOnly):
    name = "chatgpt"
    version = 2
    suffix = ".json"

    def sniff(self, path: Path, head: bytes) -> bool:
        first = first_conversation(path, head)
        return isinstance(first.get("mapping"), dict) and ("current_node" in first or "create_time" in first)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for piece, export in conversations_of(path, "ChatGPT"):
            value = obj(piece.value)
            id = text(value, "conversation_id") or text(value, "id") or f"conversation-{piece.number}"
            yield ImportedConversation(id, _entries(piece, value, export))


def _entries(piece: ArrayItem, value: JsonObject, export: Export) -> Iterator[Entry]:
    around, spans = _messages(piece.raw)
    nodes = [(id, text(node, "parent") or None, obj(node)) for id, node in obj(value, "mapping").items()]
    placed, cut = sort_tree(nodes)
    speech = {id for id, _, node in placed if _has_content(node)}
    tree = find_branches((id, parent, id in speech) for id, parent, _ in placed)

    def records() -> Records:
        yield ImportedRecord(around, {name: one for name, one in value.items() if name != "mapping"}, piece.problem)
        yield _facts(value, cut)
        yield from () if piece.problem else missing_messages(value, "mapping", kind=dict)
        for id, node in obj(value, "mapping").items():
            if not isinstance(at(node, "message"), dict) and (not isinstance(node, dict) or node.get("message") or node.get("parent")):
                yield ImportedRecord(b"", node, f"node {id!r} has no message")
        for id, parent, node in placed:
            message = obj(node, "message")
            raw = spans.get(id, b"")
            if id in speech and raw:
                parts, lost = _parts(message, export)
                if lost:
                    yield ImportedFacts(Fidelity(lost=lost))
                yield _message(id, parent, raw, message, parts)
            elif message:
                yield ImportedRecord(raw, message)

    return entries_of(records(), tree, text(value, "current_node") or None)


def _messages(raw: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Return the bytes around the nodes and, for each node id, the bytes of the node's message.
    The rest of a node changes with every reply.
    """
    found: dict[str, bytes] = {}
    around = raw
    for way, span in members_at(raw, ("mapping", "*", "message")):
        if len(way) == 3:
            found[way[1]] = raw[span.begin : span.end]
        elif len(way) == 1:
            around = raw[: span.begin] + raw[span.end :]
    return around, found


def _facts(value: JsonObject, cut: int) -> ImportedFacts:
    return ImportedFacts(
        Fidelity(approximated={"branches": cut} if cut else {}),
        title=text(value, "title"),
        agent="chatgpt",
        model=text(value, "default_model_slug"),
        created_at=milliseconds(value, "create_time"),
        updated_at=milliseconds(value, "update_time"),
        archived=flag(value, "is_archived"),
    )


def _has_content(node: JsonObject) -> bool:
    """Return whether a node has visible content. Root nodes and hidden nodes have none."""
    message = obj(node, "message")
    if text(message, "author", "role") not in _ROLES or flag(message, "metadata", "is_visually_hidden_from_conversation"):
        return False
    content = obj(message, "content")
    return any(items(content, "parts")) or any(content.get(name) for name in _WORDS)


def _message(id: str, parent: str | None, raw: bytes, message: JsonObject, parts: list[Part]) -> SessionRecord:
    role, when = _ROLES[text(message, "author", "role")], milliseconds(message, "create_time")
    if text(message, "author", "role") == "tool":
        name = text(message, "author", "name")
        return SessionRecord(id, role, raw, outputs=(Output(name, output_value(parts), name=name),), parent=parent, at=when)
    if role != "assistant":
        return SessionRecord(id, role, raw, tuple(parts), parent=parent, at=when)
    recipient = text(message, "recipient")
    if recipient not in ("", "all"):
        words = "".join(str(part.get("text", "")) for part in parts)  # JSON, or text
        parts = [tool_call(recipient, recipient, json_value(words) if words.lstrip().startswith("{") else words)]
    metadata = obj(message, "metadata")
    facts = step(text(metadata, "model_slug"), finish_reason=finish_reason(text(metadata, "finish_details", "type")))
    return SessionRecord(id, role, raw, tuple(parts), parent=parent, at=when, step=facts)


def _parts(message: JsonObject, export: Export) -> tuple[list[Part], dict[str, int]]:
    """Return the parts and, as `files`, the number of files that are missing from the export, if any."""
    content = obj(message, "content")
    parts: list[Part] = []
    requested: list[tuple[str, str]] = []
    match content.get("content_type"):
        case "text" | "multimodal_text":
            for one in items(content, "parts"):
                if pointer := text(one, "asset_pointer") or text(one, "image_asset_pointer"):
                    requested.append((pointer.rpartition("/")[2].partition("#")[0], ""))
                else:
                    parts += _piece(one)
        case "thoughts":
            for one in objects(content, "thoughts"):
                parts.append(reasoning("\n\n".join(words for name in ("summary", "content") if (words := text(one, name)))))
        case "code" | "execution_output":
            parts.append(text_part(text(content, "text")))
        case "tether_quote":
            source: Part = {"type": "source-url", "sourceId": text(content, "url"), "url": text(content, "url")}
            parts += [{**source, "title": text(content, "title")}, text_part(text(content, "text"))]
        case "user_editable_context":
            parts += [text_part(words) for name in ("user_profile", "user_instructions") if (words := text(content, name))]
        case _:
            parts.append({"type": "data-content", "data": content})
    requested += [(text(one, "id"), text(one, "name")) for one in objects(message, "metadata", "attachments")]
    # a picture is listed in the content, and a second time, with its name, as an attachment
    found = list(file_parts({id or name: (id, name) for id, name in requested}.values(), export))
    missing = sum(not there for _, there in found)
    return [*parts, *(part for part, _ in found)], {"files": missing} if missing else {}


def _piece(piece: Json) -> list[Part]:
    """Return text, or data such as audio."""
    words = piece if isinstance(piece, str) else text(piece, "text")
    if words:
        return [text_part(words)]
    return [{"type": "data-content", "data": piece}] if isinstance(piece, dict) else []
