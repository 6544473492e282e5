"""Forks: copying a branch into a new conversation in one transaction, on request or to continue a conversation that follows a source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moot.convert.closing import close_open, settle_calls
from moot.convert.fold import Folder
from moot.errors import NotFound, UsageError
from moot.store import lookup, messages
from moot.store.branches import branch_rows
from moot.store.events import Events
from moot.store.messages import check_message, new_conversation
from moot.store.rows import message_of
from moot.store.transaction import Transaction
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message
from moot.types.tree import Going, copy_key

__all__ = ["fork", "going_on"]

_MARK = re.compile(r" \(fork(?: \d+)?\)$")
_ENDED = frozenset({"finished", "failed", "cancelled"})
_COPY = "SELECT id FROM message WHERE conversation = ? AND json_extract(CAST(metadata AS TEXT), '$.source.message') = ? ORDER BY no LIMIT 1"


def fork(id: str, message: str | None, title: str, events: Events, owner: str | None, transaction: Transaction) -> Conversation:
    """Implement `Tree.fork`."""
    source = lookup.conversation(transaction, id, owner)
    if source.deleted_at is not None:
        raise NotFound(f"The conversation {id!r} is deleted.", fix=f"Restore it with `moot chat restore {id}`.")
    end = message or source.head
    if message is not None:
        check_message(transaction, source.no, message)
    rows: list[Any] = branch_rows(transaction, source.no, end, None) if end is not None else []
    if not rows:
        raise UsageError(f"The conversation {id!r} has no messages to copy.", fix="See `moot chat show ID`.")
    whole = [_whole(transaction, events, row) for row in rows]
    made = new_conversation(transaction, _like(transaction, source, rows[-1][0], title))
    transaction.add(made.no, (Event("tree", body={"op": "fork", "conversation": id, "message": rows[-1][0]}),))
    _copy(transaction, made, whole)
    return lookup.conversation(transaction, made.id)


def going_on(id: str, message: str | None, events: Events, owner: str | None, transaction: Transaction) -> Going:
    """Implement `Tree.continuation`."""
    source = lookup.conversation(transaction, id, owner)
    if message is not None:
        check_message(transaction, source.no, message)
    end = message or source.head
    if end is None or source.deleted_at is not None or not source.follows:
        return Going(source, message)
    last_seq = transaction.row("SELECT last_seq FROM message WHERE id = ?", (end,))[0]
    key = copy_key(source.id, end, last_seq)
    made = lookup.conversation_by(transaction, "key", key, source.owner)
    if made is not None and made.deleted_at is not None:
        transaction.execute("UPDATE conversation SET key = NULL WHERE no = ?", (made.no,))
        made = None
    if made is None:
        made = fork(id, message, "", events, owner, transaction)
        transaction.execute("UPDATE conversation SET key = ?, model = ? WHERE no = ?", (key, source.next_model, made.no))
        made = lookup.conversation(transaction, made.id)
    return Going(made, _copied(transaction, made.no, message))


def _copied(transaction: Transaction, conversation: int, message: str | None) -> str | None:
    """Return the id of the message's copy. Raise NotFound for a deleted message, which has none."""
    if message is None:
        return None
    row: Any = transaction.row(_COPY, (conversation, message))
    if row is None:
        raise NotFound(f"The message {message!r} is deleted.", fix="See `moot chat tree ID --all`.")
    return row[0]


def _like(transaction: Transaction, source: Conversation, message: str, title: str) -> Conversation:
    """Return an empty conversation with the source's agent, model, directory and settings, without key and sums."""
    return Conversation(
        id=new_id(),
        project=source.project,
        title=title or _title(transaction, source),
        title_source="user" if title or source.title_source == "user" else "model",
        agent=source.agent,
        agent_type=source.agent_type,
        model=source.model,
        forked_from=source.id,
        forked_from_message=message,
        directory=source.directory,
        allowed_uris=source.allowed_uris,
        settings=source.settings,
        owner=source.owner,
    )


def _title(transaction: Transaction, source: Conversation) -> str:
    """Return a title that is unique per owner, so that it can be used as a reference."""
    base = _MARK.sub("", source.title) or "untitled"
    sql = "SELECT 1 FROM conversation WHERE title = ? AND owner_id = ?"
    number = 1
    while transaction.row(sql, (title := _marked(base, number), source.owner)):
        number += 1
    return title


def _marked(title: str, number: int) -> str:
    return f"{title} (fork)" if number == 1 else f"{title} (fork {number})"


def _whole(transaction: Transaction, events: Events, row: Any) -> Message:
    """Return the message in its current state; if it is still being written, its open parts are closed."""
    message = events.folded(transaction, message_of(row), row[13])
    if message.status in _ENDED:
        return message
    folder = Folder(message.parts, message.metadata)
    why = "Not copied: the conversation was forked while this call was running."
    for chunk in (*close_open(message.parts), *settle_calls(message.parts, why)):
        folder.feed(chunk)
    return replace(message, parts=folder.parts(), metadata=folder.metadata(), status="cancelled")


def _copy(transaction: Transaction, made: Conversation, whole: Sequence[Message]) -> None:
    parent: str | None = None
    copies: list[Message] = []
    for message in whole:
        origin: JsonObject = {
            "conversation": message.conversation,
            "message": message.id,
            "first_seq": message.first_seq,
            "last_seq": message.last_seq,
        }
        metadata: JsonObject = {**message.metadata, "source": origin}
        place = (new_id(), message.role, message.parts, metadata, made.id, parent)
        copy = Message(*place, status=message.status, created_at=message.created_at)
        parent = copy.id
        copies.append(copy)
    seqs = transaction.add(made.no, [messages.message_event(copy, body={"status": copy.status}) for copy in copies])
    for copy, seq in zip(copies, seqs, strict=True):
        messages.insert(transaction, made.no, messages.placed(copy, seq))
    messages.count(transaction, made.no, len(copies), transaction.now_ms, parent)
