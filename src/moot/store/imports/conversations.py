"""Storing complete recordings, and the first and last steps of importing a conversation."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from moot.convert.imports import key_at_host, usage_of_steps
from moot.errors import NotFound
from moot.store import lookup
from moot.store.database.transaction import Transaction
from moot.store.imports.batches import Place, made_by, note, place_of, variants
from moot.store.imports.hosts import add_alias, copy_of, is_purged, move_here, stored_id
from moot.store.log import messages
from moot.store.rows import INSERT_EXCHANGE, clean, exchange_row, optional, stored_uris
from moot.store.tree import compactions
from moot.store.tree.conversations import new_conversation
from moot.store.tree.projects import default_project_id, ensure_imported, project_for_directory
from moot.types.canonical import JsonObject, dumps
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.imports import FinalFacts, ImportTarget, IncomingConversation, Recording
from moot.types.run import Run
from moot.types.usage import Usage


def add(recording: Recording, owner: str, transaction: Transaction) -> Conversation:
    """Implement `Imports.add`."""
    wanted = replace(recording.conversation, owner=owner, head=None, message_count=0)
    made = new_conversation(transaction, wanted)
    for run in recording.runs:
        _insert_run(transaction, made.no, run, owner)
    for exchange in recording.exchanges:
        transaction.execute(INSERT_EXCHANGE, exchange_row(exchange, made.no))
    transaction.add(made.no, recording.events)
    for message in recording.messages:
        messages.insert(transaction, made.no, message)
        if message.id in recording.deleted:
            transaction.execute("UPDATE message SET deleted_at = ? WHERE id = ?", (made.updated_at, message.id))
    compactions.replay(transaction, made.no, recording.events)
    _sum_up(transaction, made, recording)
    note(transaction, made.no, made.origin, owner)
    return lookup.conversation(transaction, made.id)


def _insert_run(transaction: Transaction, conversation: int, run: Run, owner: str) -> None:
    transaction.execute(
        "INSERT INTO run (id, conversation, message, owner_id, agent, agent_type, agent_session_id, model, trigger, status, on_crash,"
        " fence, settings, error, usage, cost, created_at, started_at, ended_at, result_seq, first_seq, last_seq)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(run.id, conversation, run.message, owner, run.agent, run.agent_type, run.agent_session_id, run.model),
            *(run.trigger, run.status, run.on_crash),
            dumps(run.settings),
            optional(run.error.to_json()) if run.error is not None else None,
            dumps(run.usage.to_json()),
            *(run.cost, run.created_at, run.started_at, run.ended_at, run.result_seq, run.first_seq, run.last_seq),
        ),
    )


def _sum_up(transaction: Transaction, made: Conversation, recording: Recording) -> None:
    usage = sum((run.usage for run in recording.runs), Usage())
    steps = {message.id: message.metadata for message in recording.messages}
    known = (run.cost if run.cost is not None else usage_of_steps(steps.get(run.message, {}))[1] for run in recording.runs)
    costs = [cost for cost in known if cost is not None]
    unpriced = sum(run.cost is None and (run.model != "" or run.usage != Usage()) for run in recording.runs)
    transaction.execute(
        "UPDATE conversation SET message_count = ?, head_id = ?, usage_input = ?, usage_output = ?, usage_cache_read = ?,"
        " usage_cache_write = ?, usage_reasoning = ?, cost = ?, unpriced_runs = ? WHERE no = ?",
        (
            *(len(recording.messages), recording.conversation.head),
            *(usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning),
            *(sum(costs) if costs else None, unpriced, made.no),
        ),
    )


_MADE = (
    "INSERT INTO import_conversation (owner_id, format, source_id, conversation, version, parent, parent_call, copied_from, rank,"
    " started_at) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?)"
)
_COPIED = "UPDATE import_conversation SET copied_from = ?, rank = ?, started_at = ? WHERE owner_id = ? AND format = ? AND source_id = ?"
_CALLED = "UPDATE import_conversation SET parent_call = ? WHERE conversation = ? AND parent_call IS NULL"
_BY_CALL = "UPDATE conversation SET parent_tool_call_id = ? WHERE no = ? AND parent_tool_call_id IS NULL AND parent_id IS NOT NULL"
_TO_PARENT = "UPDATE conversation SET parent_id = ?, parent_tool_call_id = ? WHERE no = ?"
_RECOUNT = (  # the answers of sub-agents count for the agent that started them
    "WITH RECURSIVE tree(no, id) AS (SELECT no, id FROM conversation WHERE no = ?"
    " UNION SELECT c.no, c.id FROM tree AS t JOIN conversation AS c ON c.parent_id = t.id)"
    " INSERT OR IGNORE INTO to_count SELECT a.message FROM tree AS t JOIN answer AS a ON a.conversation = t.no"
)
_OF_PARENT = (
    "SELECT conversation, parent_call FROM import_conversation WHERE owner_id = ? AND format = ? AND parent = ? AND conversation <> ?"
)
_CLOSED = (
    "SELECT deleted_at IS NOT NULL OR message_count > 0 AND NOT EXISTS (SELECT 1 FROM import_message WHERE conversation = ?1)"
    " FROM conversation WHERE no = ?1"
)


def receive(arriving: IncomingConversation, owner: str, transaction: Transaction) -> ImportTarget:
    """Implement `Imports.receive`."""
    source_id = key_at_host(arriving.host, arriving.source_id)
    found = place_of(transaction, owner, arriving.format, source_id) or _of_copy(transaction, arriving, owner)
    copied = (stored_id(arriving, arriving.copied_from), arriving.rank, arriving.started_at)
    if found is not None:
        closed = bool(transaction.row(_CLOSED, (found.no,))[0])
        if found.version < arriving.version:
            transaction.execute(_COPIED, (*copied, owner, arriving.format, source_id))
        if arriving.parent_call is not None and not found.is_alias:  # it may become known while the sub-agent works
            transaction.execute(_CALLED, (arriving.parent_call, found.no))
            transaction.execute(_BY_CALL, (arriving.parent_call, found.no))
        return ImportTarget(found.id, closed=closed, version=found.version, is_alias=found.is_alias)
    if is_purged(transaction, arriving, owner):
        return ImportTarget("", closed=True)
    if (ours := made_by(transaction, owner, arriving)) is not None:
        return ImportTarget(ours, closed=True)
    made = new_conversation(transaction, replace(arriving.conversation, owner=owner))
    parent = stored_id(arriving, arriving.parent) if arriving.parent != arriving.source_id else None
    transaction.execute(_MADE, (owner, arriving.format, source_id, made.no, parent, arriving.parent_call, *copied))
    if parent is not None:
        _link(transaction, (owner, arriving.format, parent), made.no, arriving.parent_call)
    waiting: list[Any] = transaction.execute(_OF_PARENT, (owner, arriving.format, source_id, made.no)).fetchall()
    for child, call in waiting:
        _link(transaction, (owner, arriving.format, source_id), child, call)
    return ImportTarget(made.id, is_new=True)


def _of_copy(transaction: Transaction, arriving: IncomingConversation, owner: str) -> Place | None:
    """Record that the arriving session is a copy, and return the conversation that it copies."""
    found = None if is_purged(transaction, arriving, owner) else copy_of(transaction, arriving, owner)
    if found is None:
        return None
    host, place = found
    if host and not arriving.host:
        move_here(transaction, arriving, owner, place)
        return place._replace(version=0, is_alias=False)
    source_id = key_at_host(arriving.host, arriving.source_id)
    add_alias(transaction, owner, arriving.format, source_id, place.no, arriving.conversation.origin)
    return place._replace(is_alias=True)


def _link(transaction: Transaction, parent: tuple[str, str, str], child: int, call: str | None) -> None:
    """Set a conversation's parent, if the parent is imported and is not a descendant."""
    row = transaction.row("SELECT id FROM conversation WHERE no = ?", (child,))
    above = place_of(transaction, *parent)
    seen: set[str] = set()
    at = above.id if above is not None else None
    while at is not None and at not in seen:
        if at == row[0]:
            return
        seen.add(at)
        next_row = transaction.row("SELECT parent_id FROM conversation WHERE id = ?", (at,))
        at = next_row[0] if next_row is not None else None
    if above is not None:
        transaction.execute(_TO_PARENT, (above.id, call, child))
        transaction.execute(_RECOUNT, (child,))


def settle(id: str, owner: str, settled: FinalFacts, transaction: Transaction) -> Conversation:
    """Implement `Imports.settle`. Raise NotFound if the conversation was purged meanwhile."""
    found = lookup.conversation(transaction, id, owner)
    row = transaction.row("SELECT head, version FROM import_conversation WHERE conversation = ?", (found.no,))
    if row is None:
        raise NotFound(f"The conversation {id!r} was not imported.")
    if settled.head is not None and found.head == row[0]:
        _move_head(transaction, found, settled.head)
    if row[1] < settled.version:
        _place(transaction, found, settled)
    origin: JsonObject = {**(found.origin or {}), **settled.origin}
    retitle = bool(settled.title) and found.title_source != "user" and not (settled.title_source == "first-line" and found.title)
    transaction.execute(
        "UPDATE conversation SET title = iif(?1, ?2, title), title_source = iif(?1, ?3, title_source),"
        " model = iif(?4 = '' OR head_id IS NOT (SELECT head FROM import_conversation WHERE conversation = ?8), model, ?4),"
        " last_model = iif(?4 = '', last_model, ?4), updated_at = max(updated_at, ?5),"
        " created_at = iif(?6 = 0, created_at, min(created_at, ?6)), origin = ?7,"
        " archived_at = iif(?9, coalesce(archived_at, updated_at), archived_at), is_task_finished = ?10 WHERE no = ?8",
        (
            *(retitle, clean(settled.title), settled.title_source, settled.model),
            *(settled.updated_at, settled.created_at, dumps(origin), found.no, settled.archived and not row[1], settled.is_finished),
        ),
    )
    transaction.execute("UPDATE import_conversation SET version = ? WHERE conversation = ?", (settled.version, found.no))
    return lookup.conversation(transaction, id)


def _place(transaction: Transaction, found: Conversation, settled: FinalFacts) -> None:
    """Set the folders and the project, which may become known only at the end of a source. Keep a project that the user chose."""
    directory, project = found.directory or settled.directory, found.project
    if project == default_project_id(found.owner):
        known = settled.project and ensure_imported(transaction, replace(settled.project, owner=found.owner))
        project = known or project_for_directory(transaction, directory, found.owner)
    allowed = stored_uris(found.allowed_uris or settled.allowed_uris)
    transaction.execute(
        "UPDATE conversation SET directory = ?, allowed_uris = ?, project_id = ? WHERE no = ?",
        (os.fsencode(directory), allowed, project, found.no),
    )


def _move_head(transaction: Transaction, found: Conversation, key: bytes) -> None:
    versions = variants(transaction, found.no, (key,)).get(key)
    head = versions[-1].message if versions else None
    if head is None or head == found.head or transaction.row("SELECT 1 FROM message WHERE id = ?", (head,)) is None:
        return
    transaction.add(found.no, (Event("tree", body={"op": "head", "message": head}),))
    transaction.execute("UPDATE conversation SET head_id = ? WHERE no = ?", (head, found.no))
    transaction.execute("UPDATE import_conversation SET head = ? WHERE conversation = ?", (head, found.no))
