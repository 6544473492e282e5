"""Queries for the list of conversations and their live runs, on any connection."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from moot.store.database.connection import Queries
from moot.store.lookup import match_cursor
from moot.store.rows import CONVERSATION, conversation_of
from moot.store.search import text
from moot.types.conversation import Conversation, Page
from moot.types.run import STARTED, RunStatus

_LIKE = (
    "title || char(10) || iif(model = '', last_model, model) || char(10) || agent || char(10)"
    " || coalesce(json_extract(CAST(origin AS TEXT), '$.format'), '') || char(10) || CAST(directory AS TEXT) LIKE ? ESCAPE '\\'"
)
_CURSOR = re.compile(r"c([0-9a-f]{1,12})-([0-9a-f]{1,8})")


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filters of a list; see `Conversations.list`."""

    limit: int = 50
    cursor: str | None = None
    directory: str | None = None
    project: str | None = None
    deleted: bool = False
    archived: bool | None = False
    query: str = ""
    owner: str | None = None
    """None = all owners."""
    parent: str | None = None
    host: str | None = None


def page(connection: Queries, wanted: ListFilter) -> Page[Conversation]:
    """Return one page of conversations, latest activity first. Raise UsageError for an invalid cursor."""
    wheres = [f"deleted_at IS {'NOT ' if wanted.deleted else ''}NULL"]
    values: list[object] = []
    if wanted.archived is not None:
        wheres.append(f"archived_at IS {'NOT ' if wanted.archived else ''}NULL")
    if wanted.owner is not None:
        wheres.append("owner_id = ?")
        values.append(wanted.owner)
    if wanted.directory is not None:
        wheres.append("directory = ?")
        values.append(os.fsencode(wanted.directory))
    if wanted.project is not None:
        wheres.append("project_id = ?")
        values.append(wanted.project)
    if wanted.host is not None:
        wheres.append("host = ?" if not wanted.host else "host <> '' AND host = ?")  # the condition of the index
        values.append(wanted.host)
    if wanted.parent is not None:
        wheres.append("parent_id = ?")
        values.append(wanted.parent)
    else:  # sub-agents are listed below their parent, but the trash lists those whose parent is not deleted
        above = "SELECT 1 FROM conversation AS p WHERE p.id = conversation.parent_id"
        wheres.append(f"(parent_id IS NULL OR NOT EXISTS ({above}{' AND p.deleted_at IS NOT NULL' if wanted.deleted else ''}))")
    for word in wanted.query.split():
        patterns = text.like_patterns(word)
        wheres.append(f"({' OR '.join([_LIKE] * len(patterns))})")
        values.extend(patterns)
    if wanted.cursor is not None:
        wheres.append("(updated_at, no) < (?, ?)")
        values.extend(int(group, 16) for group in match_cursor(_CURSOR, wanted.cursor).groups())
    sql = f"SELECT {CONVERSATION} FROM conversation WHERE {' AND '.join(wheres)} ORDER BY updated_at DESC, no DESC LIMIT ?"
    rows = connection.execute(sql, (*values, wanted.limit + 1)).fetchall()
    items = [conversation_of(row) for row in rows[: wanted.limit]]
    more = items and len(rows) > wanted.limit
    return Page(items, f"c{items[-1].updated_at:x}-{items[-1].no:x}" if more else None)


def live(connection: Queries) -> dict[str, RunStatus]:
    """Return the status of the live run of each conversation that has one, by id. A started run precedes queued ones."""
    wanted = sorted(STARTED | frozenset[RunStatus]({"queued"}))
    sql = "SELECT c.id, r.status FROM run AS r JOIN conversation AS c ON c.no = r.conversation WHERE r.status IN (?, ?, ?, ?)"
    rows: list[tuple[str, RunStatus]] = connection.execute(sql, wanted).fetchall()
    return dict(sorted(rows, key=lambda row: row[1] in STARTED))
