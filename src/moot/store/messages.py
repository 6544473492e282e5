"""Messages in a write transaction: their rows, their events, and the counts in their conversation."""

from __future__ import annotations

from dataclasses import replace

from moot.errors import Busy, UsageError
from moot.store.rows import message_body
from moot.store.transaction import Transaction, quick
from moot.types.canonical import JsonObject, dumps
from moot.types.event import Event
from moot.types.message import Message

__all__ = ["CLIENT_ID_BYTES", "count", "insert", "message_event", "placed"]

CLIENT_ID_BYTES = 128


def message_event(message: Message, *, raw: bytes | None = None, body: JsonObject | None = None) -> Event:
    """Return the `message` event of a complete message; `body` overrides fields of it."""
    return Event("message", raw=raw, body={**message_body(message), **(body or {})})


def placed(message: Message, seq: int) -> Message:
    """Return the message with the seq of the event that contains all of it."""
    return replace(message, first_seq=seq, last_seq=seq, folded_through=seq)


def insert(transaction: Transaction, conversation: int, message: Message) -> None:
    """Insert the message's row. Raise Busy if the id exists, UsageError if the client id is too long."""
    if message.client_id is not None:
        if len(message.client_id.encode()) > CLIENT_ID_BYTES:
            raise UsageError(f"The client id {message.client_id[:40]!r}… is longer than {CLIENT_ID_BYTES} bytes.")
        # an edit has the client id of the message it edits; the id then refers to the newest message with it
        transaction.execute(
            "UPDATE message SET client_id = NULL WHERE conversation = ? AND client_id = ?", (conversation, message.client_id)
        )
    stored = transaction.execute(
        "INSERT INTO message (id, conversation, parent_id, role, parts, metadata, run, status, client_id, first_seq, last_seq,"
        " folded_through, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            message.id,
            conversation,
            message.parent,
            message.role,
            quick(dumps(message.parts)),
            quick(dumps(message.metadata)),
            message.run,
            message.status,
            message.client_id,
            message.first_seq,
            message.last_seq,
            message.folded_through,
            message.created_at,
        ),
    )
    if stored.rowcount != 1:
        raise Busy(f"A message with the id {message.id!r} already exists.")


def count(transaction: Transaction, conversation: int, added: int, at: int, head: str | None) -> None:
    """Update the conversation for added messages; `head` becomes the end of its branch, if given."""
    transaction.execute(
        "UPDATE conversation SET message_count = message_count + ?, updated_at = max(updated_at, ?), head_id = coalesce(?, head_id)"
        " WHERE no = ?",
        (added, at, head, conversation),
    )
