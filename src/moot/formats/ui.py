"""The format `ui`: `UIMessage`s of the AI SDK (reference: AI SDK UI, UIMessage).

A file contains a JSON array of messages, an object with `messages` as sent by clients, or JSON Lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from moot.convert.ui_message import valid_part
from moot.formats.kit.documents import Document, documents, facts_of, peek, unreadable
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of
from moot.formats.kit.fields import milliseconds, obj, objects, text
from moot.formats.kit.records import with_counts
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Entry, ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedMessage, ImportedRecord
from moot.types.message import Role
from moot.types.part_tree import linked

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


class Ui:
    name = "ui"
    version = 2
    suffix = ".json"
    words = "messages for user interfaces built with the AI SDK"
    holds: ClassVar[Mapping[str, FidelityLevel]] = ALL_KEPT

    def sniff(self, path: Path, head: bytes) -> bool:
        seen = peek(head)
        return seen is not None and bool(seen.messages) and "moot" not in seen.about and all(_is_message(one) for one in seen.messages)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for document in documents(path):
            yield ImportedConversation(document.id, with_counts(_entries(document)))

    def write(self, exported: ExportedConversation) -> ExportFile:
        conversation = exported.conversation
        about: JsonObject = {"id": conversation.id, "title": conversation.title, "model": conversation.model}
        messages: list[Json] = []
        for one in exported.messages:
            value: JsonObject = {"id": one.id, "role": one.role, "metadata": one.metadata, "parts": list[Json](linked(one.parts))}
            messages.append({**value, "createdAt": one.created_at} if one.created_at else value)
        document = {**{name: value for name, value in about.items() if value}, "messages": messages}
        return ExportFile(dumps(document) + b"\n", fidelity_of(exported, self.holds))


def _is_message(value: JsonObject) -> bool:
    parts = value.get("parts")
    if value.get("role") not in _ROLES or not isinstance(value.get("id"), str) or not isinstance(parts, list):
        return False
    return all(text(part, "type") for part in parts)


def _entries(document: Document) -> Iterator[Entry]:
    yield facts_of(document.about)
    if document.about:
        yield ImportedRecord(document.around, document.about)
    seen: set[str] = set()
    last: str | None = None
    for number, record in enumerate(document.records, 1):
        value = record.value
        role = _ROLES.get(text(value, "role"))
        if value is None or role is None or record.problem:
            yield unreadable(record)
            continue
        id = text(value, "id")
        id = id if id and id not in seen else f"{id}#{number}"
        parent = text(value, "parent")
        seen.add(id)
        at = milliseconds(value, "createdAt") or milliseconds(value, "created_at") or milliseconds(value, "metadata", "createdAt")
        parts = tuple(part if text(part, "type") else valid_part(part) for part in objects(value, "parts"))
        yield ImportedMessage(role, parts, id, record.raw, parent if parent in seen and parent != id else last, at, obj(value, "metadata"))
        last = id
