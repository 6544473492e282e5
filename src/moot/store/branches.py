"""Reading a branch of the message tree from its end, efficiently for long conversations."""

from __future__ import annotations

from typing import Any

from moot.store.connect import Queries
from moot.store.rows import MESSAGE

__all__ = ["branch_rows"]

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


def _chained(rows: list[Any], end: str) -> list[Any]:
    """Return the leading rows in which each one is the parent of the previous."""
    found: list[Any] = []
    expected: str | None = end
    for row in rows:
        if row[0] == expected:
            found.append(row)
            expected = row[5]
    return found
