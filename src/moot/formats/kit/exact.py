"""An additional field in records that moot writes for other programs.
The programs ignore the field, and moot restores the exact message from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moot.convert.agents.session import EXACTLY
from moot.formats.kit.fields import obj, text, whole_number
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ImportedMessage
from moot.types.message import Message, Part, Role

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def mark_of(value: JsonObject) -> JsonObject:
    """Return the additional field of a record, or an empty object if the record was not written by moot."""
    mark = obj(value, EXACTLY)
    return mark if text(mark, "messageId") else {}


def marked(message: Message, records: Sequence[JsonObject], read: ImportedMessage) -> list[JsonObject]:
    """Return the message's records with the additional field.

    `read` is the message that would be read from the records without the field. The field of the first record contains the differences
    between the two messages. Equal parts are represented by their index.
    """
    places = {dumps(part): place for place, part in reversed(list(enumerate(read.parts)))}
    parts: list[Json] = [places.get(dumps(part), part) for part in message.parts]
    facts: JsonObject = {"messageId": message.id}
    if message.role != read.role:
        facts["role"] = message.role
    if parts != list(range(len(read.parts))):
        facts["parts"] = parts
    if dumps(message.metadata) != dumps(read.metadata):
        facts["metadata"] = message.metadata
    if message.created_at != read.created_at:
        facts["created_at"] = message.created_at
    if len(facts) > 1:
        facts["records"] = len(records)
    return [{**record, EXACTLY: {"messageId": message.id} if number else facts} for number, record in enumerate(records)]


def restored(read: ImportedMessage, mark: JsonObject, records: int) -> ImportedMessage:
    """Return the message that moot wrote.
    If its records have changed since then, return `read`, the message without the additional field.
    """
    if whole_number(mark, "records") != records:
        return read
    listed = mark.get("parts", list(range(len(read.parts))))
    parts = [_part(one, read.parts) for one in listed] if isinstance(listed, list) else [None]
    if None in parts:
        return read
    role, metadata = _ROLES.get(text(mark, "role"), read.role), obj(mark, "metadata") if "metadata" in mark else read.metadata
    at = (whole_number(mark, "created_at") or 0) if "created_at" in mark else read.created_at
    return replace(read, role=role, parts=tuple(filter(None, parts)), metadata=metadata, created_at=at)


def _part(value: Json, parts: Sequence[Part]) -> Part | None:
    if isinstance(value, dict):
        return value if text(value, "type") else None
    return parts[value] if type(value) is int and 0 <= value < len(parts) else None
