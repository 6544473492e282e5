"""Chats as trees of messages. The active branch ends at the topic's active node."""

from __future__ import annotations

from collections.abc import Iterator

from moot.formats._source.database import Connection, object_of, raw_of, rows
from moot.formats._source.fields import milliseconds
from moot.formats._source.tally import Tally
from moot.formats._source.tree import in_order
from moot.formats.cherry.messages import message_of
from moot.types.canonical import JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedMessage, ImportedRecord

__all__ = ["topics"]


def topics(connection: Connection) -> Iterator[ImportedConversation]:
    """Yield chats, oldest first, without deleted ones."""
    for row in rows(connection, "SELECT * FROM topic ORDER BY created_at, id"):
        if isinstance(row, str):
            break
        topic = object_of(row)
        if topic.get("deleted_at") is None:
            yield ImportedConversation(str(topic["id"]), _entries(connection, topic))


def _entries(connection: Connection, topic: JsonObject) -> Iterator[Entry]:
    tally, found, records = Tally(), list[tuple[str, str | None, tuple[JsonObject, bytes]]](), list[ImportedRecord]()
    for row in rows(connection, "SELECT * FROM message WHERE topic_id = ? ORDER BY created_at, id", topic["id"]):
        if isinstance(row, str):
            records.append(ImportedRecord(b"", problem=row))
            break
        value = object_of(row)
        parent = value.get("parent_id")
        found.append((str(value.get("id")), str(parent) if parent is not None else None, (value, raw_of(row))))
    ordered, cut = in_order(found)
    if cut:
        tally.approximated["branches"] += cut
    skipped: dict[str, str | None] = {}
    ids: set[str] = set()
    for id, parent, (value, raw) in ordered:
        parent = skipped.get(parent, parent) if parent is not None else None
        message = None if value.get("deleted_at") is not None else message_of(value, raw, parent)
        if not isinstance(message, ImportedMessage):  # its children are attached to its parent
            skipped[id] = parent
            records += [message] if message is not None else []
            continue
        ids.add(id)
        tally.keep(message)
        yield message
    for record in records:
        tally.lose("records")
        yield record
    head = str(topic.get("active_node_id"))
    tally.kept["titles"] += bool(topic.get("name"))
    tally.kept = +tally.kept
    yield ImportedFacts(
        tally.fidelity(),
        title=str(topic.get("name") or ""),
        head=head if head in ids else None,
        created_at=milliseconds(topic.get("created_at")),
        updated_at=milliseconds(topic.get("updated_at")),
        metadata={name: topic[name] for name in ("assistant_id", "prompt") if topic.get(name)},
    )
