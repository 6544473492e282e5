"""Inserting conversations and messages in a write transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, LiteralString

from moot.errors import Busy, NotFound, UsageError
from moot.store import lookup
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction, quick
from moot.store.rows import CONVERSATION, conversation_row, message_body, placeholders
from moot.store.tree.projects import ensure_project, project_for_directory
from moot.types.canonical import JsonObject, dumps
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message

CLIENT_ID_BYTES = 128


def new_conversation(transaction: Transaction, wanted: Conversation) -> Conversation:
    """Insert a conversation and its log, and return it with its `no` and times. Raise Busy if id, key or client id exists."""
    unique: tuple[tuple[LiteralString, str | None, str | None], ...] = (
        ("id", wanted.id, None),
        ("key", wanted.key, wanted.owner),
        ("client_id", wanted.client_id, wanted.owner),
    )
    for name, value, owner in unique:
        if value is not None and lookup.conversation_by(transaction, name, value, owner):
            raise Busy(f"A conversation with the {name.replace('_', ' ')} {value!r} already exists.")
    insert_conversation(transaction, wanted)
    return lookup.conversation(transaction, wanted.id)


def insert_conversation(transaction: Transaction, wanted: Conversation) -> Conversation:
    """Insert a conversation whose id, key and client id are unused."""
    now = transaction.now_ms
    created = wanted.created_at or now
    place = wanted.directory, wanted.owner
    project = ensure_project(transaction, wanted.project, wanted.owner) if wanted.project else project_for_directory(transaction, *place)
    value = replace(wanted, project=project, created_at=created, updated_at=wanted.updated_at or created)
    columns = CONVERSATION.replace("no, ", "", 1)
    no = transaction.execute(f"INSERT INTO conversation ({columns}) VALUES ({placeholders(columns)})", conversation_row(value)).lastrowid
    transaction.execute("INSERT INTO log_head (conversation) VALUES (?)", (no,))
    assert no is not None
    return replace(value, no=no)


def check_message(queries: Queries, conversation: int, id: str) -> tuple[str, str | None]:
    """Return role and parent of a message in the conversation. Raise NotFound."""
    row: Any = queries.execute("SELECT conversation, role, parent_id FROM message WHERE id = ?", (id,)).fetchone()
    if row is None or row[0] != conversation:
        raise NotFound(f"No message in this conversation has the id {id!r}.", fix="See `moot chat tree ID`.")
    return row[1], row[2]


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
            *(message.id, conversation, message.parent, message.role, quick(dumps(message.parts)), quick(dumps(message.metadata))),
            *(message.run, message.status, message.client_id, message.first_seq, message.last_seq, message.folded_through),
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
