"""The transaction that deletes a conversation with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Any

from moot.errors import Busy
from moot.store import lookup
from moot.store.connect import Queries
from moot.store.forgetting.naming import are_blobs, named_in
from moot.store.forgetting.places import PLACES, delete, select
from moot.store.forgetting.works import Work, save
from moot.store.transaction import Transaction
from moot.store.unindexing import unindex_all
from moot.types.conversation import Conversation

__all__ = ["answers_forgotten", "check_idle", "counted", "purge", "with_children"]


def with_children(queries: Queries, ids: Sequence[str], owner: str | None) -> dict[int, Conversation]:
    """Return the conversations and their sub-conversations by number. Raise NotFound."""
    found: dict[int, Conversation] = {}
    waiting = [lookup.conversation(queries, id, owner) for id in ids]
    while waiting:
        one = waiting.pop()
        if one.no in found:
            continue
        found[one.no] = one
        children: Any = queries.execute("SELECT id FROM conversation WHERE parent_id = ?", (one.id,)).fetchall()
        waiting += [lookup.conversation(queries, id, owner) for (id,) in children]
    return found


def check_idle(queries: Queries, conversations: Collection[int]) -> None:
    """Raise Busy if one of the conversations has an active run."""
    for no in conversations:
        row: Any = queries.execute(
            "SELECT r.id, c.id FROM run AS r JOIN conversation AS c ON c.no = r.conversation"
            " WHERE r.conversation = ? AND (r.status = 'running' OR r.status = 'waiting' AND r.owner IS NOT NULL)",
            (no,),
        ).fetchone()
        if row is not None:
            raise Busy(
                f"The conversation {row[1]!r} has an active run.", fix=f"Stop it with `moot chat stop {row[1][:13]}`, then try again."
            )


def counted(queries: Queries, conversation: int) -> dict[str, int]:
    """Count the rows that belong to a conversation, by table."""
    found: dict[str, int] = {}
    for table, place in PLACES.items():
        if place.of:
            found[table] = queries.execute(select("count(*)", table, place.of), (conversation,)).fetchone()[0]
    return {table: rows for table, rows in found.items() if rows}


def purge(work: Work, no: int, transaction: Transaction) -> Work:
    """Delete one conversation of the work and return the updated work; the receipt is updated in the same transaction."""
    work = deepcopy(work)  # the transaction may be rolled back and repeated
    row: Any = transaction.row("SELECT created_at, owner_id FROM conversation WHERE no = ?", (no,))
    id = work.conversations.pop(no)
    if row is None:
        return work
    check_idle(transaction, (no,))
    since, owner = row
    work.owners.add(owner)
    work.blobs |= are_blobs(transaction, named_in(transaction, no))
    if indexed := unindex_all(transaction, no):
        work.unindexed = True
        work.count("search", indexed)
    for table, place in PLACES.items():
        if place.of:
            work.count(table, transaction.execute(delete(table, place.of), (no,)).rowcount)
    work.count("idempotency", answers_forgotten(transaction, since))
    work.receipt.conversations.append(id)
    save(transaction, work)
    transaction.forget()
    return work


def answers_forgotten(transaction: Transaction, since: int = 0) -> int:
    """Drop stored responses and return how many; a repeated request is then answered without its original response."""
    return transaction.execute(
        "UPDATE idempotency SET status = 0, headers = ?, body = ? WHERE status > 0 AND at >= ?", (b"[]", b"", since)
    ).rowcount
