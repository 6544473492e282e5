"""Detection of copies among imported messages.

When an agent forks or resumes a session, it often copies messages to the new session's file. A model call that occurs in several messages
is counted in only one of them, the original. The choice of the original does not depend on the import order: a conversation precedes its
forks, then a lower rank, an earlier start and a smaller id decide. When the original is purged, the next message in this order becomes the
original.

A message whose calls are all copies is neither counted nor found by a search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from moot.convert.imports import digest_of, usage_of_steps, without_copies
from moot.store.database.connection import Queries, select_in
from moot.store.database.transaction import Transaction
from moot.store.rows import parse_stored_object

_SUMMED = ("input", "output", "cache_read", "cache_write", "reasoning")

_FORKED_FROM = (
    # the conversation with most of the originals, except the parent and sub-agents, which may share calls with it
    "UPDATE conversation AS f SET forked_from_id = (SELECT c.id FROM import_identity AS i JOIN message AS m ON m.no = i.message"
    " JOIN import_identity AS o ON o.identity = i.identity AND o.is_copy = 0 JOIN message AS om ON om.no = o.message"
    " JOIN conversation AS c ON c.no = om.conversation"
    " WHERE m.conversation = f.no AND i.is_copy = 1 AND c.no <> f.no AND c.parent_id IS NOT f.id AND f.parent_id IS NOT c.id"
    " GROUP BY c.no ORDER BY count(*) DESC, c.no LIMIT 1) WHERE no = ?"
)

_SHARED = (
    # few identities have several messages, and the other columns of their messages are in other tables
    "SELECT i.identity FROM import_identity AS i WHERE (i.is_copy OR EXISTS (SELECT 1 FROM import_identity AS o"
    " WHERE o.identity = i.identity AND (o.message, o.step) <> (i.message, i.step))) AND i.identity IN"
)


class _Holder(NamedTuple):
    """A message with a certain identity."""

    message: int
    step: int
    is_copy: bool
    no: int
    """Number of its conversation."""
    conversation: tuple[str, str, str]
    """Owner, format and source id of its conversation."""
    copied_from: str | None
    rank: int
    started_at: int


def identify(transaction: Transaction, owner: str, messages: Sequence[tuple[str, Sequence[bytes]]], released: Set[bytes]) -> None:
    """Store the identities of messages by message id (one for each model call, or one for the whole message) and find their originals.

    `released` contains further identities whose holders have changed.
    """
    changed = set(released)
    numbers = dict(select_in(transaction, "SELECT id, no FROM message WHERE id IN", [id for id, _ in messages]))
    stored = defaultdict[int, dict[int, bytes]](dict)
    for message, step, identity in select_in(
        transaction, "SELECT message, step, identity FROM import_identity WHERE message IN", numbers.values()
    ):
        stored[message][step] = identity
    rows: list[tuple[int, int, bytes]] = []
    for id, identities in messages:
        no = numbers.get(id)
        owned = _with_owner(owner, identities)
        if no is None or stored.get(no, {}) == owned:
            continue
        changed |= release(transaction, (no,)) if no in stored else set()
        rows += [(no, step, identity) for step, identity in owned.items()]
    transaction.many("INSERT INTO import_identity (message, step, identity) VALUES (?, ?, ?)", rows)
    find_originals(transaction, changed.union(identity for _, _, identity in rows))


def release(transaction: Transaction, messages: Iterable[int]) -> set[bytes]:
    """Remove the identities of messages, so that all their calls are counted, and return them."""
    released: set[bytes] = set()
    for message in messages:
        rows: Any = transaction.execute("SELECT step, identity, is_copy FROM import_identity WHERE message = ?", (message,)).fetchall()
        released.update(identity for _, identity, _ in rows)
        _count_again(transaction, message, {step for step, _, is_copy in rows if is_copy}, set())
        transaction.execute("DELETE FROM import_identity WHERE message = ?", (message,))
    return released


def release_message(transaction: Transaction, id: str) -> set[bytes]:
    """Remove the identities of the message with this id, and return them."""
    return release(transaction, [no for (no,) in transaction.execute("SELECT no FROM message WHERE id = ?", (id,)).fetchall()])


def release_conversation(transaction: Transaction, conversation: int) -> None:
    """Make the copies of a conversation's messages originals, before it is purged."""
    rows: Any = transaction.execute(
        "SELECT DISTINCT i.message FROM import_identity AS i JOIN message AS m ON m.no = i.message WHERE m.conversation = ?",
        (conversation,),
    ).fetchall()
    find_originals(transaction, release(transaction, [message for (message,) in rows]))


def find_originals(transaction: Transaction, identities: Iterable[bytes]) -> None:
    """Decide for each identity which of its messages is the original, and update the sums of all messages that changed."""
    ancestors = _Ancestors(transaction)
    changes = defaultdict[int, dict[int, bool]](dict)
    conversations: set[int] = set()
    for holders in _holders(transaction, sorted(identities)):
        original = _original(holders, ancestors)
        changed = [holder for holder in holders if holder.is_copy == (holder is original)]
        for holder in changed:
            changes[holder.message][holder.step] = holder is not original
        conversations.update(holder.no for holder in holders if changed)
    for message, steps in changes.items():
        rows: Any = transaction.execute("SELECT step, is_copy FROM import_identity WHERE message = ?", (message,)).fetchall()
        before = {step for step, is_copy in rows if is_copy}
        after = {step for step, is_copy in rows if steps.get(step, bool(is_copy))}
        transaction.many(
            "UPDATE import_identity SET is_copy = ? WHERE message = ? AND step = ?",
            [(int(is_copy), message, step) for step, is_copy in steps.items()],
        )
        _count_again(transaction, message, before, after)
    for conversation in conversations:
        transaction.execute(_FORKED_FROM, (conversation,))


def _with_owner(owner: str, identities: Sequence[bytes]) -> dict[int, bytes]:
    """Return the known identities by step. The same call has different identities for different owners."""
    return {step: digest_of(owner.encode() + identity) for step, identity in enumerate(identities) if identity}


def _holders(transaction: Transaction, identities: Sequence[bytes]) -> Iterator[list[_Holder]]:
    """Yield the messages of each identity that has several messages, or only a copy."""
    several = {identity for (identity,) in select_in(transaction, _SHARED, identities)}
    sql = (
        "SELECT i.identity, i.message, i.step, i.is_copy, m.conversation, o.owner_id, o.format, o.source_id, o.copied_from, o.rank,"
        " o.started_at FROM import_identity AS i JOIN message AS m ON m.no = i.message"
        " JOIN import_conversation AS o ON o.conversation = m.conversation"
        " WHERE i.identity IN"
    )
    found = defaultdict[bytes, dict[tuple[int, int], _Holder]](dict)
    for identity, message, step, is_copy, no, *place, copied_from, rank, started_at in select_in(transaction, sql, sorted(several)):
        owner, format, source_id = place
        found[identity][message, step] = _Holder(
            message, step, bool(is_copy), no, (owner, format, source_id), copied_from, rank, started_at
        )
    for holders in found.values():
        yield list(holders.values())


class _Ancestors:
    """The conversations from which others were forked; each is looked up once."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._known: dict[tuple[str, str, str], str | None] = {}

    def of(self, holder: _Holder) -> Iterator[tuple[str, str, str]]:
        owner, format, _ = holder.conversation
        seen, above = {holder.conversation}, holder.copied_from
        while above is not None and (place := (owner, format, above)) not in seen:
            yield place
            seen.add(place)
            if place not in self._known:
                row: Any = self._queries.execute(
                    "SELECT copied_from FROM import_conversation WHERE owner_id = ? AND format = ? AND source_id = ?", place
                ).fetchone()
                self._known[place] = row[0] if row is not None else None
            above = self._known[place]


def _original(holders: Sequence[_Holder], ancestors: _Ancestors) -> _Holder:
    conversations = {holder.conversation for holder in holders}
    first = [holder for holder in holders if conversations.isdisjoint(ancestors.of(holder))] or holders
    return min(first, key=lambda one: (one.rank, one.started_at, one.conversation, one.message, one.step))


def _count_again(transaction: Transaction, message: int, before: Set[int], after: Set[int]) -> None:
    """Update the sums of a message's conversation, and have the statistics count the message again."""
    if before == after:
        return
    conversation, stored = transaction.row("SELECT conversation, metadata FROM message WHERE no = ?", (message,))
    metadata = parse_stored_object(stored)
    (old, old_cost, was_unpriced), (new, new_cost, is_unpriced) = (
        usage_of_steps(without_copies((), metadata, copies)[1]) for copies in (before, after)
    )
    transaction.execute(
        "UPDATE conversation SET usage_input = usage_input + ?, usage_output = usage_output + ?, usage_cache_read = usage_cache_read + ?,"
        " usage_cache_write = usage_cache_write + ?, usage_reasoning = usage_reasoning + ?, cost = cost + ?,"
        " unpriced_runs = unpriced_runs + ? WHERE no = ?",
        (
            *((getattr(new, name) or 0) - (getattr(old, name) or 0) for name in _SUMMED),
            *((new_cost or 0) - (old_cost or 0), is_unpriced - was_unpriced, conversation),
        ),
    )
    transaction.execute("INSERT OR IGNORE INTO to_count SELECT no FROM message WHERE no = ? AND role = 'assistant'", (message,))
