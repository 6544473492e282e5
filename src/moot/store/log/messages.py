"""Inserting messages in a write transaction, with their events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moot.errors import Busy, NotFound, UsageError
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction, quick
from moot.store.rows import message_body
from moot.types.canonical import JsonObject, dumps
from moot.types.event import Event
from moot.types.message import Message

CLIENT_ID_BYTES = 128


def check_message(queries: Queries, conversation: int, id: str) -> tuple[str, str | None]:
    """Return the role and parent of a message in the conversation. Raise NotFound if the conversation has no such message."""
    row: Any = queries.execute("SELECT conversation, role, parent_id FROM message WHERE id = ?", (id,)).fetchone()
    if row is None or row[0] != conversation:
        raise NotFound(f"No message in this conversation has the id {id!r}.", fix="See `moot chat tree ID`.")
    return row[1], row[2]


def message_event(message: Message, *, raw: bytes | None = None, body: JsonObject | None = None) -> Event:
    """Return the `message` event of a complete message; `body` overrides fields of it."""
    return Event("message", raw=raw, body={**message_body(message), **(body or {})})


def is_behind(queries: Queries, message: str, ancestor: str) -> bool:
    """Return True if the ancestor is the message itself or on the path from the message to the first one."""
    if message == ancestor:
        return True
    sql = (
        "WITH RECURSIVE up (id, parent) AS (SELECT id, parent_id FROM message WHERE id = ? UNION ALL"
        " SELECT m.id, m.parent_id FROM message AS m JOIN up ON m.id = up.parent) SELECT 1 FROM up WHERE id = ? LIMIT 1"
    )
    return queries.execute(sql, (message, ancestor)).fetchone() is not None


def add(
    transaction: Transaction,
    conversation: int,
    message: Message,
    *,
    raw: bytes | None = None,
    body: JsonObject | None = None,
    move_head: bool = True,
) -> Message:
    """Store a complete message and its event, and return it with its seqs. If `move_head` is set, it becomes the conversation's head."""
    stays: JsonObject = {} if move_head else {"head": False}
    seq = transaction.add(conversation, (message_event(message, raw=raw, body={**(body or {}), **stays}),))[-1]
    stored = placed(message, seq)
    insert(transaction, conversation, stored)
    count(transaction, conversation, 1, message.created_at, message.id if move_head else None)
    return stored


def check_client_id(client_id: str) -> None:
    """Raise UsageError if a client's id is too long to store."""
    if len(client_id.encode()) > CLIENT_ID_BYTES:
        raise UsageError(f"The client id {client_id[:40]!r}… is longer than {CLIENT_ID_BYTES} bytes.")


def placed(message: Message, seq: int) -> Message:
    """Return the message with its seqs set to `seq`, the event that contains the complete message."""
    return replace(message, first_seq=seq, last_seq=seq, folded_through=seq)


def insert(transaction: Transaction, conversation: int, message: Message) -> None:
    """Insert the message's row. Raise Busy if a message with its id already exists, UsageError if the client id is too long."""
    if message.client_id is not None:
        check_client_id(message.client_id)
        # an edit has the same client id as the edited message; from then on the client id refers to the edit
        transaction.execute(
            "UPDATE message SET client_id = NULL WHERE conversation = ? AND client_id = ?", (conversation, message.client_id)
        )
    stored = transaction.execute(
        "INSERT INTO message (id, conversation, parent_id, role, parts, metadata, run, status, client_id, first_seq, last_seq,"
        " folded_through, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            *(message.id, conversation, message.parent, message.role, quick(dumps(message.parts)), quick(dumps(message.metadata))),
            *(message.run, message.status, message.client_id, message.first_seq, message.last_seq, message.folded_through),
            message.created_at,
        ),
    )
    if stored.rowcount != 1:
        raise Busy(f"A message with the id {message.id!r} already exists.")


def count(transaction: Transaction, conversation: int, added: int, at: int, head: str | None) -> None:
    """Update the conversation's message count and modification time. If `head` is given, it becomes the conversation's head."""
    transaction.execute(
        "UPDATE conversation SET message_count = message_count + ?, updated_at = max(updated_at, ?), head_id = coalesce(?, head_id)"
        " WHERE no = ?",
        (added, at, head, conversation),
    )
