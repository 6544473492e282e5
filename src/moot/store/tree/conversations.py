"""Conversations and their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, LiteralString

from moot.errors import Busy
from moot.store import lookup
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log import messages
from moot.store.log.events import Events
from moot.store.log.messages import check_message
from moot.store.rows import CONVERSATION_COLUMNS, IS_AT_WORK, clean, conversation_row, message_of, optional, placeholders, stored_uris
from moot.store.tree.branches import branch_rows, first_rows
from moot.store.tree.lists import ListFilter, choices, page
from moot.store.tree.projects import default_project_id, ensure_project, project_for_directory
from moot.types.canonical import JsonObject, dumps
from moot.types.conversation import DEFAULT_PROJECT, TEMPORARY_MS, Conversation, ListChoices, Page, check_tags
from moot.types.event import Event
from moot.types.message import Message
from moot.types.token import LOCAL_USER

_BELOW: LiteralString = (
    "WITH RECURSIVE below (no, id) AS (SELECT no, id FROM conversation WHERE no = ?"
    " UNION SELECT c.no, c.id FROM conversation AS c JOIN below AS b ON c.parent_id = b.id)"
)
_TEMPORARY_TOP: LiteralString = (  # a purge of a temporary conversation includes everything below it
    "WITH RECURSIVE above (no, parent_id, depth) AS (SELECT no, parent_id, 0 FROM conversation WHERE no = ?"
    " UNION ALL SELECT c.no, c.parent_id, a.depth + 1 FROM conversation AS c JOIN above AS a ON c.id = a.parent_id"
    " WHERE c.expires_at IS NOT NULL) SELECT no FROM above ORDER BY depth DESC LIMIT 1"
)
_AT_WORK = f"{_BELOW} SELECT 1 FROM run AS r WHERE r.conversation IN (SELECT no FROM below) AND {IS_AT_WORK} LIMIT 1"
_RANK = {"none": 0, "first-line": 1, "model": 2, "user": 3}


def new_conversation(transaction: Transaction, wanted: Conversation) -> Conversation:
    """Insert a conversation and its log, and return it with its `no` and times. Raise Busy if its id, key or client id already exists."""
    unique: tuple[tuple[LiteralString, str | None, str | None], ...] = (
        ("id", wanted.id, None),
        ("key", wanted.key, wanted.owner),
        ("client_id", wanted.client_id, wanted.owner),
    )
    for name, value, owner in unique:
        if value is not None and lookup.conversation_by(transaction, name, value, owner):
            raise Busy(f"A conversation with the {name.replace('_', ' ')} {value!r} already exists.")
    insert_conversation(transaction, wanted)
    return lookup.conversation(transaction, wanted.id)


def insert_conversation(transaction: Transaction, wanted: Conversation) -> Conversation:
    """Insert a conversation whose id, key and client id are unused."""
    now = transaction.now_ms
    created = wanted.created_at or now
    place = wanted.directory, wanted.owner
    project = ensure_project(transaction, wanted.project, wanted.owner) if wanted.project else project_for_directory(transaction, *place)
    value = replace(wanted, project=project, created_at=created, updated_at=wanted.updated_at or created)
    above = transaction.row("SELECT expires_at FROM conversation WHERE id = ?", (wanted.parent,)) if wanted.parent else None
    if wanted.expires_at is not None or (above is not None and above[0] is not None):
        value = replace(value, expires_at=now + TEMPORARY_MS)
    columns = CONVERSATION_COLUMNS.replace("no, ", "", 1)
    no = transaction.execute(f"INSERT INTO conversation ({columns}) VALUES ({placeholders(columns)})", conversation_row(value)).lastrowid
    transaction.execute("INSERT INTO log_head (conversation) VALUES (?)", (no,))
    assert no is not None
    put_tags(transaction, no, value.tags)
    return replace(value, no=no)


def put_tags(transaction: Transaction, no: int, tags: Iterable[str]) -> None:
    """Replace the tags of a conversation."""
    transaction.execute("DELETE FROM conversation_tag WHERE conversation = ?", (no,))
    sql = "INSERT INTO conversation_tag (conversation, tag, active_at) SELECT no, ?, updated_at FROM conversation WHERE no = ?"
    transaction.many(sql, [(tag, no) for tag in tags])


def _mark(
    transaction: Transaction, found: Conversation, archived: bool | None, pinned: bool | None, tags: Iterable[str] | None
) -> JsonObject:
    """Archive, pin and tag a conversation, or undo that. Return the changes. Raise UsageError if a tag is invalid."""
    facts: JsonObject = {}
    marks: tuple[tuple[LiteralString, bool | None, int | None], ...] = (
        ("archived", archived, found.archived_at),
        ("pinned", pinned, found.pinned_at),
    )
    for name, wanted, at in marks:
        if wanted is not None and wanted != (at is not None):
            facts[name] = wanted
            transaction.execute(f"UPDATE conversation SET {name}_at = ? WHERE no = ?", (transaction.now_ms if wanted else None, found.no))
    if tags is not None and (words := check_tags(tags)) != found.tags:
        facts["tags"] = list(words)
        put_tags(transaction, found.no, words)
    return facts


class ConversationTree:
    """The SQLite implementation of `Conversations`."""

    def __init__(self, writer: Writer, reader: Reader, events: Events, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._events = events
        self._owner = owner

    async def create(self, conversation: Conversation) -> Conversation:
        theirs = conversation if self._owner is None else replace(conversation, owner=self._owner)

        return await self._writer.write(lambda transaction: new_conversation(transaction, theirs), sync=True)

    async def get(self, reference: str) -> Conversation:
        return await self._reader.read(lambda connection: lookup.find_conversation(connection, reference, self._owner))

    async def by_key(self, key: str) -> Conversation | None:
        return await self._reader.read(lambda connection: lookup.conversation_by(connection, "key", key, self._owner or LOCAL_USER))

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        directory: str | None = None,
        project: str | None = None,
        deleted: bool = False,
        archived: bool | None = False,
        query: str = "",
        parent: str | None = None,
        host: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        since: int | None = None,
        until: int | None = None,
        called: bool | None = None,
        tag: str | None = None,
        pinned: bool | None = None,
        pinned_first: bool = False,
    ) -> Page[Conversation]:
        folder = default_project_id(self._owner or LOCAL_USER) if project == DEFAULT_PROJECT else project
        place = (limit, cursor, directory, folder, deleted, archived, query, self._owner, parent)
        listed = ListFilter(*place, host, agent, model, since, until, called, tag, pinned, pinned_first)
        return await self._reader.read(lambda connection: page(connection, listed))

    async def choices(self) -> ListChoices:
        return await self._reader.read(lambda connection: choices(connection, self._owner))

    async def rename(self, id: str, title: str, source: Literal["first-line", "model", "user"]) -> Conversation:
        def work(transaction: Transaction, found: Conversation) -> None:
            if _RANK[source] < _RANK[found.title_source]:
                return
            name = clean(title)
            transaction.add(found.no, (Event("meta", body={"title": name, "source": source}),))
            transaction.execute("UPDATE conversation SET title = ?, title_source = ? WHERE no = ?", (name, source, found.no))

        return await self._change(id, work)

    async def update(
        self,
        id: str,
        *,
        agent: tuple[str, str] | None = None,
        model: str | None = None,
        archived: bool | None = None,
        project: str | None = None,
        allowed_uris: tuple[str, ...] | None = None,
        settings: JsonObject | None = None,
        pinned: bool | None = None,
        tags: Iterable[str] | None = None,
        keep: bool = False,
        touch: bool = False,
    ) -> Conversation:
        def work(transaction: Transaction, found: Conversation) -> None:
            facts: JsonObject = {}
            if project is not None:
                facts["project"] = ensure_project(transaction, project, found.owner)
            name, kind = agent or (found.agent, found.agent_type)
            if agent is not None:
                facts |= {"agent": clean(name), "agent_type": clean(kind)}
            if model is not None:
                facts["model"] = clean(model)
            changes = {**(settings or {}), **({} if model is None else {"model": clean(model) or None})}
            if changes:
                merged = {**found.settings, **changes}
                facts["settings"] = {key: value for key, value in merged.items() if value is not None}
            if allowed_uris is not None:
                facts["allowed_uris"] = list(allowed_uris)
            origin = found.origin
            if model is not None and origin is not None and "model" not in origin:  # an old import; its answers keep their model
                origin = {**origin, "model": found.model}
            facts |= _mark(transaction, found, archived, pinned, tags)
            if keep and found.expires_at is not None:
                facts["temporary"] = False
                top: Any = transaction.row(_TEMPORARY_TOP, (found.no,))
                transaction.execute(f"{_BELOW} UPDATE conversation SET expires_at = NULL WHERE no IN (SELECT no FROM below)", top)
            if facts:
                transaction.add(found.no, (Event("meta", body=facts),))
            transaction.execute(
                "UPDATE conversation SET agent = ?, agent_type = ?, model = coalesce(?, model),"
                " project_id = coalesce(?, project_id), settings = coalesce(?, settings), allowed_uris = coalesce(?, allowed_uris),"
                " updated_at = max(updated_at, ?), origin = ? WHERE no = ?",
                (
                    *(clean(name), clean(kind), facts.get("model"), facts.get("project")),
                    dumps(facts["settings"]) if changes else None,
                    stored_uris(allowed_uris) if allowed_uris is not None else None,
                    *(transaction.now_ms if touch else 0, optional(origin), found.no),
                ),
            )

        return await self._change(id, work)

    async def delete(self, id: str, *, restore: bool = False) -> Conversation:
        def work(transaction: Transaction, found: Conversation) -> None:
            if not restore and transaction.row(_AT_WORK, (found.no,)):
                raise Busy(
                    f"The conversation {id!r} or one of its sub-agents has an unfinished run.",
                    fix=f"Stop it with `moot chat stop {id[:13]}`, then delete the conversation.",
                )
            if (found.deleted_at is None) == restore:
                return
            transaction.add(found.no, (Event("tree", body={"op": "restore" if restore else "delete"}),))
            if restore:  # a restored conversation counts as active, so that retention rules don't delete it again because of its age
                now, archived = transaction.now_ms, None if found.archived_at is None else transaction.now_ms
                values = (now, archived, found.no)
                transaction.execute("UPDATE conversation SET deleted_at = NULL, updated_at = ?, archived_at = ? WHERE no = ?", values)
            else:
                transaction.execute("UPDATE conversation SET deleted_at = ? WHERE no = ?", (transaction.now_ms, found.no))

        return await self._change(id, work, sync=True)

    async def branch(
        self, id: str, *, head: str | None = None, limit: int | None = None, first: bool = False, after: str | None = None
    ) -> list[Message]:
        def work(connection: Connection) -> list[Message]:
            no = lookup.number(connection, id, self._owner)
            end = head or connection.execute("SELECT head_id FROM conversation WHERE no = ?", (no,)).fetchone()[0]
            if end is None:
                return []
            rows = first_rows(connection, no, end, limit, after) if first else branch_rows(connection, no, end, limit)
            if not rows:
                check_message(connection, no, end)
            return [self._message(connection, found) for found in rows]

        return await self._reader.read(work)

    async def message(self, reference: str, *, conversation: str | None = None) -> Message:
        def work(connection: Connection) -> Message:
            id = reference
            if conversation is not None:
                id = lookup.message_id(connection, lookup.number(connection, conversation, self._owner), reference)
            return self._message(connection, lookup.message_row(connection, id, self._owner))

        return await self._reader.read(work)

    async def add_message(
        self, message: Message, *, raw: bytes | None = None, body: JsonObject | None = None, move_head: bool = True
    ) -> Message:
        def work(transaction: Transaction) -> Message:
            no = lookup.number(transaction, message.conversation, self._owner)
            if message.parent is not None:
                check_message(transaction, no, message.parent)
            new = replace(message, created_at=message.created_at or transaction.now_ms)
            return messages.add(transaction, no, new, raw=raw, body=body, move_head=move_head)

        return await self._writer.write(work, message.conversation)

    async def by_client_id(self, client_id: str) -> Conversation | None:
        owner = self._owner or LOCAL_USER

        def work(connection: Connection) -> Conversation | None:
            found = lookup.conversation_by(connection, "id", client_id, self._owner)
            return found or lookup.conversation_by(connection, "client_id", client_id, owner)

        return await self._reader.read(work)

    async def _change(self, id: str, change: Callable[[Transaction, Conversation], None], *, sync: bool = False) -> Conversation:
        def work(transaction: Transaction) -> Conversation:
            change(transaction, lookup.conversation(transaction, id, self._owner))
            return lookup.conversation(transaction, id)

        return await self._writer.write(work, id, sync=sync)

    def _message(self, connection: Connection, row: Any) -> Message:
        return self._events.folded(connection, message_of(row), row[13])
