"""Looking up rows by the references that people and programs use, inside any transaction.

With an `owner`, rows of other owners are treated as nonexistent, with the same error messages. None means all owners.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, LiteralString

from moot.errors import NotFound, UsageError
from moot.store.database.connection import Queries
from moot.store.rows import APPROVAL, CONVERSATION, MESSAGE, RUN, RUN_TABLES, conversation_of, run_of
from moot.types.conversation import Conversation
from moot.types.ids import SHORTEST_PREFIX
from moot.types.run import Run

if TYPE_CHECKING:
    from moot.store.database.reader import Reader

_CANDIDATES = 5
OWNED = " AND owner_id = coalesce(?, owner_id)"
"""Restricts a WHERE clause to the rows of the bound owner; NULL = all owners."""
CONVERSATION_OWNED = " AND c.owner_id = coalesce(?, c.owner_id)"
"""Restricts a WHERE clause with a conversation joined as `c` to its owner."""
APPROVAL_OWNED = f" AND EXISTS (SELECT 1 FROM {RUN_TABLES} WHERE r.id = approval.run{CONVERSATION_OWNED})"
"""Restricts a WHERE clause on `approval` to the owner."""


def prefix_range(reference: str) -> tuple[str, str]:
    """Return the range of ids that start with the reference; an empty one if it is too short."""
    return (reference, f"{reference}\U0010ffff") if len(reference) >= SHORTEST_PREFIX else ("", "")


def match_cursor(pattern: re.Pattern[str], cursor: str) -> re.Match[str]:
    """Match the whole cursor against the pattern and return the match. Raise UsageError if it does not match the pattern."""
    match = pattern.fullmatch(cursor)
    if match is None:
        raise UsageError(f"Invalid cursor {cursor!r}.", fix="Use the unchanged `next_cursor` from the previous page.")
    return match


def conversation_by(queries: Queries, where: LiteralString, value: object, owner: str | None = None) -> Conversation | None:
    found = f"SELECT {CONVERSATION} FROM conversation WHERE {where} = ?"
    if owner is None:
        row = queries.execute(found, (value,)).fetchone()
    else:  # the indexes that start with the owner need a plain value; OWNED would scan all conversations
        row = queries.execute(f"{found} AND owner_id = ?", (value, owner)).fetchone()
    return None if row is None else conversation_of(row)


def conversation(queries: Queries, id: str, owner: str | None = None) -> Conversation:
    """Return the conversation with exactly this id. Raise NotFound if there is none."""
    found = conversation_by(queries, "id", id, owner)
    if found is None:
        raise _no_conversation(id)
    return found


def number(queries: Queries, id: str, owner: str | None = None) -> int:
    """Return a conversation's `no` by its exact id. Raise NotFound if there is no such conversation."""
    row: Any = queries.execute(f"SELECT no FROM conversation WHERE id = ?{OWNED}", (id, owner)).fetchone()
    if row is None:
        raise _no_conversation(id)
    return row[0]


def find_conversation(queries: Queries, reference: str, owner: str | None = None) -> Conversation:
    """Return the conversation with this id, client id, unique id prefix or exact title; a deleted one only if no other matches.

    Raise NotFound if none or several match.
    """
    exact = conversation_by(queries, "id", reference, owner) or conversation_by(queries, "client_id", reference, owner)
    if exact is not None:
        return exact
    tries: list[tuple[str, tuple[str, ...]]] = [("id >= ? AND id < ?", prefix_range(reference)), ("title = ?", (reference,))]
    for deleted in ("deleted_at IS NULL", "deleted_at IS NOT NULL"):
        for where, values in tries:
            rows = queries.execute(
                f"SELECT {CONVERSATION} FROM conversation WHERE {where} AND {deleted}{OWNED} ORDER BY updated_at DESC LIMIT {_CANDIDATES}",
                (*values, owner),
            ).fetchall()
            if len(rows) == 1:
                return conversation_of(rows[0])
            if rows:
                found = ", ".join(f"{each.id} ({each.title!r})" for each in map(conversation_of, rows))
                raise NotFound(f"{reference!r} matches several conversations: {found}.", fix="Use more characters of the id.")
    raise NotFound(f"No conversation matches {reference!r}.{_too_short(reference)}", fix="See `moot chat list`.")


def _too_short(reference: str) -> str:
    """Return a sentence for the error message if the reference may be the beginning of an id that is too short to be matched."""
    short = len(reference) < SHORTEST_PREFIX and re.fullmatch("[0-9a-f]+", reference)
    return f" The beginning of an id needs at least {SHORTEST_PREFIX} characters." if short else ""


def _no_conversation(id: str) -> NotFound:
    return NotFound(f"No conversation has the id {id!r}.")


def message_row(queries: Queries, id: str, owner: str | None = None) -> Any:
    """Return a row of `MESSAGE`. Raise NotFound if no message has this id."""
    row = queries.execute(
        f"SELECT {MESSAGE} FROM message AS m JOIN conversation AS c ON c.no = m.conversation WHERE m.id = ?{CONVERSATION_OWNED}",
        (id, owner),
    ).fetchone()
    if row is None:
        raise NotFound(f"No message has the id {id!r}.")
    return row


def message_id(queries: Queries, conversation: int, reference: str) -> str:
    """Return the id of a message in the conversation, found by its id or client id. Raise NotFound if there is none."""
    for where in ("id = ?", "client_id = ?"):
        row: Any = queries.execute(f"SELECT id FROM message WHERE conversation = ? AND {where}", (conversation, reference)).fetchone()
        if row is not None:
            return row[0]
    raise NotFound(f"No message in this conversation has the id {reference!r}.")


async def all_conversations(reader: Reader) -> AsyncGenerator[tuple[int, str], None]:
    """Yield the number and id of all conversations, including deleted ones, because their data exists until a purge."""
    after, sql = 0, "SELECT no, id FROM conversation WHERE no > ? ORDER BY no LIMIT 200"
    while page := await reader.rows(sql, (after,), tuple[int, str]):
        for each in page:
            yield each
        after = page[-1][0]


def approval_row(queries: Queries, id: str, owner: str | None = None) -> Any:
    """Return a row of `APPROVAL`, or None."""
    return queries.execute(f"SELECT {APPROVAL} FROM approval WHERE id = ?{APPROVAL_OWNED}", (id, owner)).fetchone()


def run(queries: Queries, reference: str, owner: str | None = None) -> Run:
    """Return the run with this id or unique id prefix. Raise NotFound if none or several match."""
    rows = queries.execute(f"SELECT {RUN} FROM {RUN_TABLES} WHERE r.id = ?{CONVERSATION_OWNED}", (reference, owner)).fetchall()
    if not rows:
        rows = queries.execute(
            f"SELECT {RUN} FROM {RUN_TABLES} WHERE r.id >= ? AND r.id < ?{CONVERSATION_OWNED} LIMIT {_CANDIDATES}",
            (*prefix_range(reference), owner),
        ).fetchall()
    if len(rows) == 1:
        return run_of(rows[0])
    if rows:
        raise NotFound(f"{reference!r} matches several runs: {', '.join(each[0] for each in rows)}.", fix="Use more characters of the id.")
    raise NotFound(f"No run matches {reference!r}.{_too_short(reference)}")
