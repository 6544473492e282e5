"""JSON values of the formats `json` and `jsonl`, described in docs/export.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

from moot.formats._writing import things_in
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, Fidelity, ImportedFacts, ImportedMessage, ImportedRecord, Keeping
from moot.types.message import Message
from moot.types.part import Part

__all__ = ["HOLDS", "VERSION", "ConversationReader", "conversation_value", "lost", "message_value", "named"]

VERSION = 1

HOLDS: dict[str, Keeping] = dict.fromkeys(
    (
        "messages",
        "reasoning",
        "signatures",
        "tool calls",
        "files",
        "pictures",
        "other parts",
        "times",
        "models",
        "usage",
        "costs",
        "titles",
        "branches",
        "sub-agents",
    ),
    "kept",
)

_FACTS = ("id", "title", "agent", "agent_type", "model", "directory", "forked_from", "created_at", "updated_at")


def conversation_value(exported: ExportedConversation, parent: str | None) -> JsonObject:
    conversation = exported.conversation
    value: JsonObject = {name: fact for name in _FACTS if (fact := getattr(conversation, name)) not in ("", 0, None)}
    if exported.messages:
        value["head"] = exported.messages[-1].id
    if parent is not None:
        value |= {"parent": parent, "parent_call": conversation.parent_tool_call}
    return value | _took(conversation)


def _took(conversation: Conversation) -> JsonObject:
    usage = conversation.usage.to_json()
    value: JsonObject = {"usage": usage} if usage else {}
    return value if conversation.cost is None else {**value, "cost": conversation.cost}


def message_value(message: Message, parent: str | None) -> JsonObject:
    value: JsonObject = {"id": message.id, "role": message.role, "parent": parent, "status": message.status}
    if message.created_at:
        value["created_at"] = message.created_at
    return {**value, "metadata": message.metadata, "parts": list[Json](message.parts)}


def named(value: JsonObject, name: str) -> str:
    """Return a string field, or an empty string."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


class ConversationReader:
    """A reader of one conversation's values. An invalid message affects no other message."""

    def __init__(self, value: JsonObject) -> None:
        self._value = value
        self._seen = set[str]()

    def begin(self) -> ImportedFacts:
        value = self._value
        title = named(value, "title")
        return ImportedFacts(
            Fidelity({"titles": 1} if title else {}),
            title=title,
            directory=named(value, "directory"),
            agent=named(value, "agent"),
            model=named(value, "model"),
            created_at=_time(value, "created_at"),
            updated_at=_time(value, "updated_at"),
        )

    def end(self) -> ImportedFacts:
        head = named(self._value, "head")
        metadata: JsonObject = {name: self._value[name] for name in ("usage", "cost", "forked_from") if name in self._value}
        return ImportedFacts(head=head if head in self._seen else None, metadata=metadata)

    def read(self, value: Json, raw: bytes, where: str) -> Iterator[ImportedMessage | ImportedRecord | ImportedFacts]:
        message = self._message(value, raw)
        if isinstance(message, str):
            yield from lost(raw, value, f"{where}: {message}")
            return
        self._seen.add(message.source_id)
        yield message
        yield ImportedFacts(Fidelity(Counter(things_in(message))))

    def _message(self, value: Json, raw: bytes) -> ImportedMessage | str:
        """Return the message or a description of the problem."""
        if not isinstance(value, dict):
            return "not an object"
        id, role, parent, parts, metadata = (value.get(name) for name in ("id", "role", "parent", "parts", "metadata"))
        if not isinstance(id, str) or not id or id in self._seen:
            return f"invalid or duplicate id {id!r}"
        if role not in ("system", "user", "assistant"):
            return f"unknown role {role!r}; expected system, user or assistant"
        if not isinstance(parts, list) or not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
            return "`parts` is not a list of objects with a `type`"
        return ImportedMessage(
            role,
            tuple(cast("list[Part]", parts)),
            id,
            raw,
            parent if isinstance(parent, str) and parent in self._seen else None,
            _time(value, "created_at"),
            metadata if isinstance(metadata, dict) else {},
        )


def lost(raw: bytes, value: Json, problem: str) -> Iterator[ImportedRecord | ImportedFacts]:
    """Yield an unreadable record and count it as lost."""
    yield ImportedRecord(raw, value, problem)
    yield ImportedFacts(Fidelity(lost={"records": 1}))


def _time(value: JsonObject, name: str) -> int:
    found = value.get(name)
    return found if type(found) is int and 0 <= found < 1 << 53 else 0
