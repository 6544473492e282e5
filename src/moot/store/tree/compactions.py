"""Summaries of branches, stored in rows that are derived from `tree` events. Each message is the end of at most one summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from moot.errors import NotFound, UsageError
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction
from moot.store.log.messages import check_message, is_behind
from moot.store.rows import plain_or_damaged
from moot.types.canonical import dumps
from moot.types.event import Event
from moot.types.tree import Compaction

_COLUMNS = "through, summary, plan, exchange, seq, at"


def compactions(queries: Queries, conversation: int, among: Sequence[str] | None = None) -> list[Compaction]:
    """Return the conversation's summaries, oldest first; if `among` is set, only those that end with one of these messages."""
    where, values = "conversation = ?", [conversation, *([] if among is None else [dumps(list(among)).decode()])]
    if among is not None:
        where += " AND through IN (SELECT value FROM json_each(?))"
    rows: list[Any] = queries.execute(f"SELECT {_COLUMNS} FROM compaction WHERE {where} ORDER BY seq", values).fetchall()
    return [Compaction(*row) for row in rows]


def digest(queries: Queries, conversation: int, messages: Sequence[str]) -> bytes:
    """Implement `Tree.digest`."""
    found = blake2b(digest_size=32)
    for one in compactions(queries, conversation):
        found.update(f"{one.through} {one.seq}\n".encode())
    rows = queries.execute(
        "SELECT m.id, m.deleted_at, m.parts FROM json_each(?) AS wanted JOIN message AS m ON m.id = wanted.value"
        " WHERE m.conversation = ? ORDER BY m.no",
        (dumps(list(messages)).decode(), conversation),
    )
    for id, deleted_at, stored in rows:
        parts = plain_or_damaged(stored)
        found.update(f"{id} {deleted_at} {len(parts)}\n".encode() + parts)
    return found.digest()


def record(transaction: Transaction, conversation: int, compaction: Compaction) -> Compaction:
    """Store a summary with its event; an empty one withdraws the summary that ends with that message.

    Raise NotFound if there is no such message or summary, UsageError if the message is still being written.
    """
    check_message(transaction, conversation, compaction.through)
    if transaction.row("SELECT 1 FROM message WHERE id = ? AND status = 'streaming'", (compaction.through,)):
        raise UsageError(f"The message {compaction.through!r} is still being written.", fix="Wait until it is complete.")
    if not compaction.summary and not compactions(transaction, conversation, [compaction.through]):
        raise NotFound(f"No summary ends with the message {compaction.through!r}.")
    (seq,) = transaction.add(conversation, (Event("tree", body=compaction.to_body()),))
    stored = replace(compaction, seq=seq, at=transaction.now_ms)
    apply(transaction, conversation, stored)
    return stored


def apply(transaction: Transaction, conversation: int, compaction: Compaction) -> None:
    """Replace the stored summary that ends with the same message; delete it if the new summary is empty."""
    transaction.execute("DELETE FROM compaction WHERE conversation = ? AND through = ?", (conversation, compaction.through))
    if compaction.summary:
        transaction.execute(
            f"INSERT INTO compaction (conversation, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(conversation, compaction.through, compaction.summary, compaction.plan, compaction.exchange),
                *(compaction.seq, compaction.at),
            ),
        )


def withdraw_covering(transaction: Transaction, conversation: int, messages: Iterable[str]) -> None:
    """Withdraw the summaries of branches with one of these messages, because their content must no longer be sent to a model."""
    ids = list(messages)
    for compaction in compactions(transaction, conversation):
        if any(is_behind(transaction, compaction.through, id) for id in ids):
            record(transaction, conversation, Compaction(compaction.through, ""))


def copy_branch(transaction: Transaction, source: int, target: int, ids: Mapping[str, str]) -> None:
    """Copy a branch's summaries to the branch's copy; `ids` maps the messages to their copies. The new summaries refer to no exchange."""
    for compaction in compactions(transaction, source, list(ids)):
        record(transaction, target, replace(compaction, through=ids[compaction.through], exchange=None))


def replay(transaction: Transaction, conversation: int, events: Iterable[Event]) -> None:
    """Store the summaries in the events of an imported recording."""
    for event in events:
        body = event.body if isinstance(event.body, dict) else {}
        left = body.get("body") if event.kind == "tombstone" and body.get("was") == "tree" else body if event.kind == "tree" else None
        found = Compaction.of_body(left, event.seq, event.at // 1000) if isinstance(left, dict) else None
        if found is not None and transaction.row("SELECT 1 FROM message WHERE id = ? AND conversation = ?", (found.through, conversation)):
            apply(transaction, conversation, found)
