"""Reading branches of the message tree, or the whole tree as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.errors import NotFound
from moot.store.database.connection import Queries
from moot.store.log.events import Events
from moot.store.rows import MESSAGE, message_of, parse_stored_object
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.hooks import is_withheld, was_sent
from moot.types.message import Part, is_tool, tool_name
from moot.types.tree import Node

_ALL = 1 << 62
_TABLES = "message AS m JOIN conversation AS c ON c.no = m.conversation"
_STORED = (
    f"SELECT {MESSAGE}, m.deleted_at FROM {_TABLES}"
    " WHERE m.conversation = ? AND m.no <= (SELECT no FROM message WHERE id = ?) ORDER BY m.no DESC LIMIT ?"
)
_WALKED = (
    "WITH RECURSIVE branch (no, parent_id, depth, seen) AS ("
    " SELECT no, parent_id, 0, deleted_at IS NULL FROM message WHERE id = ?1 AND conversation = ?2"
    " UNION ALL SELECT m.no, m.parent_id, depth + 1, seen + (m.deleted_at IS NULL)"
    " FROM branch JOIN message AS m ON m.id = branch.parent_id WHERE seen < ?3)"
    f" SELECT {MESSAGE} FROM branch JOIN message AS m ON m.no = branch.no JOIN conversation AS c ON c.no = m.conversation"
    " WHERE m.deleted_at IS NULL ORDER BY depth"
)
_DELETED_AT = 14
_PATH = (
    "WITH RECURSIVE branch (no, id, parent_id, deleted_at, depth) AS ("
    " SELECT no, id, parent_id, deleted_at, 0 FROM message WHERE id = ?1 AND conversation = ?2"
    " UNION ALL SELECT m.no, m.id, m.parent_id, m.deleted_at, depth + 1 FROM branch JOIN message AS m ON m.id = branch.parent_id)"
    " SELECT no, id, deleted_at FROM branch ORDER BY depth DESC"
)
_NUMBERED = (
    f"SELECT {MESSAGE} FROM json_each(?) AS wanted JOIN message AS m ON m.no = wanted.value"
    " JOIN conversation AS c ON c.no = m.conversation ORDER BY wanted.key"
)


def branch_rows(queries: Queries, conversation: int, end: str, limit: int | None) -> list[Any]:
    """Return the last `limit` rows of `MESSAGE` on the branch that ends with `end`, oldest first, without deleted messages."""
    wanted = _ALL if limit is None else limit
    # most branches are stored as consecutive messages; the rest is walked parent by parent
    chained = _chained(queries.execute(_STORED, (conversation, end, wanted)).fetchall(), end)
    rest = chained[-1][5] if chained else end
    rows = [row for row in chained if row[_DELETED_AT] is None]
    if rest is not None and len(rows) < wanted:
        rows += queries.execute(_WALKED, (rest, conversation, wanted - len(rows))).fetchall()
    rows.reverse()
    return rows


def first_rows(queries: Queries, conversation: int, end: str, limit: int | None, after: str | None) -> list[Any]:
    """Return the first `limit` rows of `MESSAGE` on the branch that ends with `end`, or those after the message `after`.

    Deleted messages are left out. Raise NotFound if `after` isn't on the branch.
    """
    path: list[Any] = queries.execute(_PATH, (end, conversation)).fetchall()
    if after is not None:
        at = next((index for index, row in enumerate(path) if row[1] == after), None)
        if at is None:
            fix = "The branch may have changed. Read it again from the start."
            raise NotFound(f"The branch contains no message with the id {after!r}.", fix=fix)
        path = path[at + 1 :]
    wanted = [row[0] for row in path if row[2] is None][:limit]
    return queries.execute(_NUMBERED, (dumps(wanted).decode(),)).fetchall()


def _chained(rows: list[Any], end: str) -> list[Any]:
    found: list[Any] = []
    expected: str | None = end
    for row in rows:
        if row[0] == expected:
            found.append(row)
            expected = row[5]
    return found


def withheld(queries: Queries, conversation: int, ids: Sequence[str]) -> set[str]:
    """Implement `Tree.withheld`."""
    rows: list[Any] = queries.execute(
        "SELECT m.id, m.role, m.metadata, a.metadata FROM json_each(?) AS wanted JOIN message AS m ON m.id = wanted.value"
        " LEFT JOIN message AS a ON a.parent_id = m.id AND a.role = 'assistant' WHERE m.conversation = ?",
        (dumps(list(ids)).decode(), conversation),
    ).fetchall()
    found: set[str] = set()
    sent: set[str] = set()
    for id, role, own, answer in rows:
        if is_withheld(parse_stored_object(own)):
            found.add(id)
        elif role == "user" and answer is not None:
            facts = parse_stored_object(answer)
            if is_withheld(facts):
                found.add(id)
            elif was_sent(facts):
                sent.add(id)
    return found - sent


_LINE = 200  # maximum number of characters of a message's preview line


def nodes(queries: Queries, conversation: Conversation, events: Events) -> list[Node]:
    """Implement `Tree.nodes`."""
    rows: list[Any] = queries.execute(
        f"SELECT {MESSAGE}, m.deleted_at FROM message AS m JOIN conversation AS c ON c.no = m.conversation"
        " WHERE m.conversation = ? ORDER BY m.no",
        (conversation.no,),
    ).fetchall()
    shown = _shown({row[0]: row[5] for row in rows}, conversation.head)
    found: list[Node] = []
    for number, row in enumerate(rows, 1):
        message = events.folded(queries, message_of(row), conversation.no)
        line = _line(message.parts)
        place = (number, message.id, message.parent, message.role, message.status, line)
        found.append(Node(*place, message.created_at, message.run, message.id in shown, row[14] is not None))
    return found


def _shown(parents: dict[str, str | None], head: str | None) -> set[str]:
    found: set[str] = set()
    while head is not None and head in parents:
        found.add(head)
        head = parents[head]
    return found


def _line(parts: Sequence[Part]) -> str:
    for part in parts:
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str):
            line = next((line.strip() for line in text[: 4 * _LINE].splitlines() if line.strip()), "")
            if line:
                return line[:_LINE]
    other = next((part for part in parts if is_tool(part) or part.get("type") == "file"), None)
    if other is None:
        return ""
    return f"→ {tool_name(other)}" if is_tool(other) else f"[{other.get('filename') or 'file'}]"
