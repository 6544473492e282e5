"""Deletion of a conversation with all its rows, reading of its prompts, and selection of expired conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from typing import Any

from moot.errors import Busy
from moot.store import lookup
from moot.store.database.connection import Queries
from moot.store.database.transaction import Transaction
from moot.store.imports.copies import release_conversation
from moot.store.imports.hosts import remember_purged
from moot.store.maintenance.purge.blobs import are_blobs, named_in
from moot.store.maintenance.purge.jobs import EraseJob, save
from moot.store.maintenance.purge.tables import PLACES, delete, select
from moot.store.rows import CONVERSATION, DAMAGED, MESSAGE, conversation_of, message_of
from moot.store.search.indexer import unindex_all
from moot.types.conversation import Conversation
from moot.types.limits import Retention, RetentionRule
from moot.types.maintenance import Expiry
from moot.types.message import text_of


def prompts(queries: Queries, conversations: Iterable[int]) -> set[str]:
    """Return the texts of all prompts, and the titles."""
    found: set[str] = set()
    for no in conversations:
        rows: Any = queries.execute(
            f"SELECT {MESSAGE} FROM message AS m JOIN conversation AS c ON c.no = m.conversation"
            " WHERE m.conversation = ? AND m.role = 'user'",
            (no,),
        )
        for row in rows:
            message = message_of(row)
            if message.parts != (DAMAGED,):
                found.add(text_of(message.parts))
        found.update(title for (title,) in queries.execute("SELECT title FROM conversation WHERE no = ?", (no,)))
    return {text for text in found if text}


_DAY = 86_400_000  # ms
_TEMPORARY = (  # interrupted runs don't keep a temporary conversation, because its program has ended
    f"SELECT {CONVERSATION} FROM conversation WHERE expires_at < ? AND NOT EXISTS (SELECT 1 FROM conversation AS p"
    " WHERE p.id = conversation.parent_id AND p.expires_at IS NOT NULL) ORDER BY no"
)


def expired(queries: Queries, rules: Retention, now: int) -> list[Expiry]:
    """Return conversations to delete or purge, except those with an unfinished run. Sub-conversations follow their parent, unless they were
    deleted separately."""
    names: dict[str, str] = dict(queries.execute("SELECT id, name FROM project").fetchall())
    temporary = [conversation_of(row) for row in queries.execute(_TEMPORARY, (now,)).fetchall()]
    over = [Expiry(one, "purge", "temporary") for one in temporary if _is_idle(queries, one)]
    if not (rules.trash_days or rules.keep_days or rules.archived_days or rules.projects):
        return over
    found: Any = queries.execute(
        f"SELECT {CONVERSATION} FROM conversation WHERE expires_at IS NULL AND (parent_id IS NULL OR deleted_at IS NOT NULL) AND NOT EXISTS"
        " (SELECT 1 FROM run WHERE conversation = no AND status IN ('queued', 'running', 'waiting', 'interrupted')) ORDER BY no"
    )
    expiries = over
    for row in found:
        conversation = conversation_of(row)
        keeping = rules.projects.get(conversation.project) or rules.projects.get(names.get(conversation.project, "")) or rules
        if (expiry := _judged(conversation, rules.trash_days, keeping, now)) is not None:
            expiries.append(expiry)
    return expiries


def _judged(conversation: Conversation, trash_days: int, keeping: RetentionRule, now: int) -> Expiry | None:
    if conversation.deleted_at is not None:
        if _is_over(conversation.deleted_at, trash_days, now):
            return Expiry(conversation, "purge", f"deleted more than {_days(trash_days)} ago")
    elif conversation.archived_at is not None:
        if _is_over(conversation.archived_at, keeping.archived_days, now):
            return Expiry(conversation, "delete", f"archived more than {_days(keeping.archived_days)} ago")
    elif _is_over(conversation.updated_at, keeping.keep_days, now):
        return Expiry(conversation, "delete", f"no activity for more than {_days(keeping.keep_days)}")
    return None


def _is_over(since: int, days: int, now: int) -> bool:
    return days > 0 and since < now - days * _DAY


def _days(days: int) -> str:
    return "a day" if days == 1 else f"{days:,} days"


def with_children(queries: Queries, ids: Sequence[str], owner: str | None) -> dict[int, Conversation]:
    """Return the conversations and their sub-conversations by number. Raise NotFound if an id is unknown."""
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


def _is_idle(queries: Queries, conversation: Conversation) -> bool:
    try:
        check_idle(queries, with_children(queries, [conversation.id], None))
    except Busy:
        return False
    return True


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


def counted(queries: Queries, conversation: int) -> Counter[str]:
    """Count the rows that belong to a conversation, by table."""
    counts = Counter[str]()
    for table, place in PLACES.items():
        if place.of:
            counts[table] = queries.execute(select("count(*)", table, place.of), (conversation,)).fetchone()[0]
    return +counts


def purge(work: EraseJob, no: int, transaction: Transaction) -> EraseJob:
    """Delete one conversation of the job and return the updated job. The receipt is stored in the same transaction."""
    work = deepcopy(work)  # the transaction may be rolled back and repeated
    row: Any = transaction.row("SELECT created_at, owner_id FROM conversation WHERE no = ?", (no,))
    id = work.conversations.pop(no)
    if row is None:
        return work
    check_idle(transaction, (no,))
    since, owner = row
    work.owners.add(owner)
    work.blobs |= are_blobs(transaction, named_in(transaction, no))
    release_conversation(transaction, no)
    remember_purged(transaction, no)
    if indexed := unindex_all(transaction, no):
        work.unindexed = True
        work.count({"search": indexed})
    work.count({table: transaction.execute(delete(table, place.of), (no,)).rowcount for table, place in PLACES.items() if place.of})
    work.count({"idempotency": answers_forgotten(transaction, since)})
    work.receipt.conversations.append(id)
    save(transaction, work)
    transaction.forget()
    return work


def answers_forgotten(transaction: Transaction, since: int = 0) -> int:
    """Delete the responses stored for idempotency keys since `since` (ms) and return their number. Repeated requests no longer get them."""
    return transaction.execute(
        "UPDATE idempotency SET status = 0, headers = ?, body = ? WHERE status > 0 AND at >= ?", (b"[]", b"", since)
    ).rowcount
