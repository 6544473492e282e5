"""Queries for the list of conversations and their live runs, on any connection."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString

from moot.errors import NotFound
from moot.plugins import FORMATS
from moot.plugins.registry import hint
from moot.store.database.connection import Queries
from moot.store.lookup import match_cursor
from moot.store.rows import CONVERSATION, LISTED_AGENT, LISTED_MODEL, conversation_of
from moot.store.search import text
from moot.types.conversation import DEFAULT_PROJECT, Conversation, ListChoices, Page
from moot.types.run import STARTED, RunStatus

_LIKE: LiteralString = (
    f"title || char(10) || {LISTED_MODEL} || char(10) || {LISTED_AGENT} || char(10)"
    " || coalesce(json_extract(CAST(origin AS TEXT), '$.format'), '') || char(10) || CAST(directory AS TEXT) LIKE ? ESCAPE '\\'"
)
_HAS_TAG: LiteralString = "EXISTS (SELECT 1 FROM conversation_tag AS t WHERE t.conversation = conversation.no AND t.tag = ?)"
_CURSOR = re.compile(r"([cp])([0-9a-f]{1,12})-([0-9a-f]{1,8})")


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
    agent: str | None = None
    model: str | None = None
    since: int | None = None
    until: int | None = None
    called: bool | None = None
    tag: str | None = None
    pinned: bool | None = None
    pinned_first: bool = False


def page(connection: Queries, wanted: ListFilter) -> Page[Conversation]:
    """Return one page of conversations, latest activity first. Raise UsageError for an invalid cursor."""
    if not wanted.pinned_first or wanted.pinned is not None:
        return _page(connection, wanted)
    # two lists, one after the other: cursors of pinned conversations start with `p`
    first: Page[Conversation] = Page([])
    if wanted.cursor is None or match_cursor(_CURSOR, wanted.cursor)[1] == "p":
        first = _page(connection, replace(wanted, pinned=True))
        wanted = replace(wanted, cursor=None, limit=wanted.limit - len(first.items))
        if first.next_cursor or (first.items and not wanted.limit):
            last = first.items[-1]
            follows = first.next_cursor or _page(connection, replace(wanted, pinned=False, limit=1)).items
            return Page(first.items, _cursor(last, "p") if follows else None)
    rest = _page(connection, replace(wanted, pinned=False))
    return Page([*first.items, *rest.items], rest.next_cursor)


def _cursor(last: Conversation, kind: Literal["c", "p"] = "c") -> str:
    return f"{kind}{last.updated_at:x}-{last.no:x}"


def _page(connection: Queries, wanted: ListFilter) -> Page[Conversation]:
    wheres, values = _conditions(wanted)
    for word in wanted.query.split():
        patterns = text.like_patterns(word)
        likes: list[LiteralString] = [_LIKE] * len(patterns)
        wheres.append("(" + " OR ".join(likes) + ")")
        values.extend(patterns)
    if wanted.cursor is not None:
        wheres.append("(active_at, t.conversation) < (?, ?)" if _is_by_tag(wanted) else "(updated_at, no) < (?, ?)")
        values.extend(int(group, 16) for group in match_cursor(_CURSOR, wanted.cursor).groups()[1:])
    rows = _select(connection, wanted, " AND ".join(wheres), (*values, wanted.limit + 1))
    items = [conversation_of(row) for row in rows[: wanted.limit]]
    more = items and len(rows) > wanted.limit
    return Page(items, _cursor(items[-1]) if more else None)


def _select(connection: Queries, wanted: ListFilter, where: LiteralString, values: Sequence[object]) -> list[Any]:
    tables, order = "conversation", "updated_at DESC, no DESC"
    if wanted.pinned:
        tables = "conversation INDEXED BY conversation_pinned"
    elif _is_by_tag(wanted):
        tables, order = "conversation_tag AS t CROSS JOIN conversation ON no = t.conversation", "active_at DESC, t.conversation DESC"
    sql = f"SELECT {CONVERSATION} FROM {tables} WHERE {where} ORDER BY {order} LIMIT ?"
    return connection.execute(sql, values).fetchall()


def _is_by_tag(wanted: ListFilter) -> bool:
    """Return whether the list is read in the order of the index of tags. Pinned conversations are few, so each one's tags are checked."""
    return wanted.tag is not None and not wanted.pinned


def _conditions(wanted: ListFilter) -> tuple[list[LiteralString], list[object]]:
    """Return the filters' SQL conditions, with their values. A `+` keeps SQLite from using an index that finds more rows."""
    wheres: list[LiteralString] = [f"deleted_at IS {'NOT ' if wanted.deleted else ''}NULL"]
    if wanted.archived is not None:
        wheres.append(f"archived_at IS {'NOT ' if wanted.archived else ''}NULL")
    if wanted.pinned is not None:
        wheres.append(f"pinned_at IS {'NOT ' if wanted.pinned else ''}NULL")
    if wanted.parent is None:  # sub-agents are listed below their parent, but the trash lists those whose parent is not deleted
        wheres.append("expires_at IS NULL")
        above = "SELECT 1 FROM conversation AS p WHERE p.id = conversation.parent_id"
        wheres.append(f"(parent_id IS NULL OR NOT EXISTS ({above}{' AND p.deleted_at IS NOT NULL' if wanted.deleted else ''}))")
    named: dict[LiteralString, object] = {
        ("tag = ?" if _is_by_tag(wanted) else _HAS_TAG): wanted.tag,
        "parent_id = ?": wanted.parent,
        ("host <> '' AND host = ?" if wanted.host else "host = ?"): wanted.host,  # with the condition of the index
        LISTED_AGENT + " = ?": wanted.agent,
        LISTED_MODEL + " = ?": wanted.model,
        "directory = ?": None if wanted.directory is None else os.fsencode(wanted.directory),
        "project_id = ?": wanted.project,
        "is_call = ?": wanted.called,
        "owner_id = ?": wanted.owner,
        ("active_at >= ?" if _is_by_tag(wanted) else "updated_at >= ?"): wanted.since,
        "+no IN (SELECT no FROM conversation WHERE created_at < ?)": wanted.until,  # one scan of the table, not a lookup for each row
    }
    given: dict[LiteralString, object] = {condition: value for condition, value in named.items() if value is not None}
    selective: LiteralString = "" if wanted.pinned else next(iter(given), "")
    for condition in given:
        plus: LiteralString = "" if condition == selective or not condition.endswith(" = ?") else "+"
        wheres.append(plus + condition)
    return wheres, list(given.values())


def project_id(connection: Queries, reference: str) -> str:
    """Return the id of the project with this id or name, for the local user. Raise NotFound if none or several have the name."""
    named = "SELECT id FROM project WHERE id = ? OR name = ? ORDER BY id <> ? LIMIT 2"
    found: list[tuple[str]] = connection.execute(named, (reference, reference, reference)).fetchall()
    if not found and reference != DEFAULT_PROJECT:
        raise NotFound(f"No project has the id or name {reference!r}.")
    if len(found) > 1 and found[0][0] != reference:
        raise NotFound(f"{reference!r} matches several projects.", fix="Use the project's id.")
    return found[0][0] if found else DEFAULT_PROJECT


def listed_name(kind: Literal["agent", "model", "host", "tag"], name: str, listed: ListChoices) -> str:
    """Return the agent, model, host or tag in `listed` that matches a name, ignoring case. Raise NotFound if there is none.

    An agent whose conversations were imported may be named by their format.
    """
    names = {"agent": listed.agents, "model": listed.models, "host": listed.hosts, "tag": listed.tags}[kind]
    meant = {one.casefold(): one for one in reversed(names)} | {one: one for one in names}
    if found := meant.get(name) or meant.get(name.casefold()):
        return found
    if kind == "agent" and name in FORMATS and (found := meant.get(getattr(FORMATS.make(name), "agent_type", ""))):
        return found
    close = [repr(one) for one in names if name.casefold() in one.casefold()][:3]
    suggestion = f" Did you mean {' or '.join(close)}?" if close else hint(name, names)
    listing = "Run 'moot chat list' to see the tags." if kind == "tag" else f"Run 'moot stats --by {kind}' to list them."
    raise NotFound(f"No conversation has the {kind} {name!r}.{suggestion}", fix="" if suggestion else listing)


def with_listed_names(wanted: ListFilter, listed: ListChoices) -> ListFilter:
    """Return the filter with agent, model, host and tag as listed. Raise NotFound if one of them doesn't exist."""
    return replace(
        wanted,
        agent=listed_name("agent", wanted.agent, listed) if wanted.agent else wanted.agent,
        model=listed_name("model", wanted.model, listed) if wanted.model else wanted.model,
        host=listed_name("host", wanted.host, listed) if wanted.host else wanted.host,
        tag=listed_name("tag", wanted.tag, listed) if wanted.tag else wanted.tag,
    )


def choices(connection: Queries, owner: str | None) -> ListChoices:
    """Return the agents, models, hosts and tags of the owner's conversations, and the number of conversations that `/v1` created."""
    rows: list[tuple[int, int | None]] = connection.execute(_CALLS, (owner, owner)).fetchall()
    count, latest = rows[0]
    agents, models = _distinct(connection, LISTED_AGENT, owner), _distinct(connection, LISTED_MODEL, owner)
    hosts = _distinct(connection, "host", owner, "host <> '' AND ")
    return ListChoices(agents, models, hosts, count, latest, _tags(connection, owner))


_CALLS = (
    "SELECT count(*), max(updated_at) FROM conversation"
    " WHERE is_call = 1 AND deleted_at IS NULL AND archived_at IS NULL AND (?1 IS NULL OR owner_id = ?2)"
)


def _distinct(connection: Queries, expression: LiteralString, owner: str | None, indexed: LiteralString = "") -> tuple[str, ...]:
    """Return the distinct values of an indexed expression, without the empty one. Each costs one lookup in the index.

    `indexed` is the condition of the index, if the index contains only some of the rows.
    """
    found: list[str] = []
    sql = f"SELECT min({expression}) FROM conversation WHERE {indexed}{expression} > ?"
    last: str | None = ""
    while last is not None:
        rows: list[tuple[str | None]] = connection.execute(sql, (last,)).fetchall()
        last = rows[0][0]
        if last is not None and (owner is None or connection.execute(_HELD.format(indexed + expression), (last, owner)).fetchone()):
            found.append(last)
    return tuple(found)


def _tags(connection: Queries, owner: str | None) -> tuple[str, ...]:
    """Return the tags of the owner's conversations that are not deleted. Each costs one lookup in the index."""
    found: list[str] = []
    last: str | None = ""
    while last is not None:
        rows: list[tuple[str | None]] = connection.execute("SELECT min(tag) FROM conversation_tag WHERE tag > ?", (last,)).fetchall()
        last = rows[0][0]
        if last is not None and connection.execute(_TAGGED, (last, owner, owner)).fetchone():
            found.append(last)
    return tuple(found)


_TAGGED = (
    "SELECT 1 FROM conversation_tag AS t CROSS JOIN conversation AS c ON c.no = t.conversation"
    " WHERE t.tag = ? AND c.deleted_at IS NULL AND c.expires_at IS NULL AND (? IS NULL OR c.owner_id = ?) LIMIT 1"
)
_HELD = "SELECT 1 FROM conversation WHERE {} = ? AND +owner_id = ? LIMIT 1"


def live(connection: Queries) -> dict[str, RunStatus]:
    """Return the status of the live run of each conversation that has one, by id. A started run takes precedence over queued ones."""
    wanted = sorted(STARTED | frozenset[RunStatus]({"queued"}))
    sql = "SELECT c.id, r.status FROM run AS r JOIN conversation AS c ON c.no = r.conversation WHERE r.status IN (?, ?, ?, ?)"
    rows: list[tuple[str, RunStatus]] = connection.execute(sql, wanted).fetchall()
    return dict(sorted(rows, key=lambda row: row[1] in STARTED))
