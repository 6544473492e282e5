"""Runs, their inboxes and approvals, and permissions of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from moot.errors import Busy, NotFound
from moot.store import lookup
from moot.store.database.connection import Connection, Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.log.changes import continue_run, deny_open
from moot.store.log.events import Events
from moot.store.lookup import APPROVAL_OWNED, CONVERSATION_OWNED
from moot.store.rows import (
    APPROVAL,
    EXCHANGE,
    RUN,
    RUN_TABLES,
    approval_of,
    exchange_of,
    message_of,
    optional,
    parse_stored,
    parse_stored_object,
    run_of,
)
from moot.store.submission import WITHDRAWN, at_run_limit, post, submit, supersede
from moot.store.tree.projects import project_of
from moot.types.approval import Answer, Approval, Grant, grants_of
from moot.types.canonical import Json, dumps
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.run import OPEN, Run, RunStatus
from moot.types.store import Accepted, Fence, InboxItem, RunSnapshot, Submission


class SqliteGrants:
    """`Grants` on SQLite."""

    def __init__(self, writer: Writer, owner: str | None = None) -> None:
        self._writer = writer
        self._owner = owner

    async def revoke(self, conversation: str, *, tool: str, match: str) -> bool:
        def work(transaction: Transaction) -> bool:
            no = transaction.conversation_no(lookup.find_conversation(transaction, conversation, self._owner).id)
            return change_grants(transaction, no, lambda kept: [grant for grant in kept if (grant.tool, grant.match) != (tool, match)])

        return await self._writer.write(work, sync=True)


def change_grants(transaction: Transaction, conversation: int, change: Callable[[Sequence[Grant]], Sequence[Grant]]) -> bool:
    """Update the conversation's grants and return True if they changed."""
    settings = parse_stored_object(transaction.row("SELECT settings FROM conversation WHERE no = ?", (conversation,))[0])
    before = grants_of(settings)
    after = tuple(change(before))
    if after == before:
        return False
    settings["grants"] = list[Json]([grant.to_json() for grant in after])
    transaction.add(conversation, (Event("meta", body={"settings": settings}),))
    transaction.execute("UPDATE conversation SET settings = ? WHERE no = ?", (dumps(settings), conversation))
    return True


_INBOX = "SELECT kind, body, no, at FROM inbox WHERE run = ? AND taken_at IS NULL ORDER BY no"
_ANSWERED = "SELECT id FROM approval WHERE run = ? AND approved IS NOT NULL"
_CALLED_OFF = "SELECT DISTINCT run FROM inbox WHERE run IN (SELECT value FROM json_each(?)) AND kind = 'cancel' AND taken_at IS NULL"


def run_snapshot(id: str, events: Events, queries: Queries) -> RunSnapshot:
    """Find by the run's exact id. Raise NotFound."""
    run = lookup.run(queries, id)
    conversation = lookup.conversation(queries, run.conversation)
    row: Any = lookup.message_row(queries, run.message)
    return RunSnapshot(
        run,
        conversation,
        project_of(queries, conversation.project),
        message_of(row),
        tuple(events.all(queries, row[13], id)),
        tuple(map(_item, queries.execute(_INBOX, (id,)))),
        frozenset(found[0] for found in queries.execute(_ANSWERED, (id,))),
    )


def _item(row: Any) -> InboxItem:
    kind, body, no, at = row
    return InboxItem(kind, parse_stored(body) if body is not None else None, no, at)


def cancelled_runs(runs: bytes, queries: Queries) -> frozenset[str]:
    """Return the runs (given as a JSON array of ids) that have a cancel in their inbox."""
    return frozenset(found[0] for found in queries.execute(_CALLED_OFF, (runs.decode(),)))


_IS_OPEN = "r.status IN ('queued', 'running', 'waiting', 'interrupted')"
"""The condition of the partial index of open runs; SQLite uses the index only for this condition."""


class SqliteRunReader:
    """`RunReading` on SQLite."""

    def __init__(self, reader: Reader, owner: str | None = None) -> None:
        self._reader = reader
        self._owner = owner

    async def run(self, id: str) -> Run:
        return await self._reader.read(lambda connection: lookup.run(connection, id, self._owner))

    async def runs(
        self, *, conversation: str | None = None, statuses: frozenset[RunStatus] | None = None, limit: int = 200, before: int | None = None
    ) -> list[Run]:
        wheres = ["true"]
        values: list[object] = []
        if conversation is not None:
            wheres.append("r.conversation = (SELECT no FROM conversation WHERE id = ?)")
            values.append(conversation)
        if statuses is not None:
            wheres.append(f"r.status IN ({', '.join('?' * len(statuses))})")
            values.extend(sorted(statuses))
            if statuses <= OPEN:
                wheres.append(_IS_OPEN)
        if before is not None:
            wheres.append("r.no < ?")
            values.append(before)
        sql = f"SELECT {RUN} FROM {RUN_TABLES} WHERE {' AND '.join(wheres)}{CONVERSATION_OWNED} ORDER BY r.no DESC LIMIT ?"
        return await self._reader.rows(sql, (*values, self._owner, limit), run_of)

    async def last_answer(self, message: str) -> Run | None:
        tables = f"{RUN_TABLES} JOIN message AS m ON m.id = r.message"
        sql = f"SELECT {RUN} FROM {tables} WHERE m.parent_id = ?{CONVERSATION_OWNED} ORDER BY r.no DESC LIMIT 1"
        return await self._reader.row(sql, (message, self._owner), run_of)

    async def inbox(self, run: str) -> list[InboxItem]:
        sql = (
            f"SELECT i.kind, i.body, i.no, i.at FROM {RUN_TABLES} JOIN inbox AS i ON i.run = r.id"
            f" WHERE i.run = ? AND i.taken_at IS NULL{CONVERSATION_OWNED} ORDER BY i.no"
        )
        return await self._reader.rows(sql, (run, self._owner), _item)

    async def approval(self, id: str) -> Approval | None:
        def work(connection: Connection) -> Approval | None:
            row = lookup.approval_row(connection, id, self._owner)
            return None if row is None else approval_of(row)

        return await self._reader.read(work)

    async def approvals(self, *, run: str | None = None, conversation: str | None = None, open_only: bool = True) -> list[Approval]:
        wheres = ["approved IS NULL"] if open_only else ["true"]
        values: list[str] = []
        if run is not None:
            wheres.append("run = ?")
            values.append(run)
        if conversation is not None:
            wheres.append(f"run IN (SELECT r.id FROM {RUN_TABLES} WHERE c.id = ?)")
            values.append(conversation)
        sql = f"SELECT {APPROVAL} FROM approval WHERE {' AND '.join(wheres)}{APPROVAL_OWNED} ORDER BY asked_at, rowid"
        return await self._reader.rows(sql, (*values, self._owner), approval_of)

    async def exchange(self, id: str) -> Exchange | None:
        return await self._reader.row(f"SELECT {EXCHANGE} WHERE e.id = ?{CONVERSATION_OWNED}", (id, self._owner), exchange_of)


class RunRecords(SqliteRunReader):
    """`Records` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader, events: Events) -> None:
        super().__init__(reader)
        self._writer = writer
        self._events = events
        self._written = Events()
        """Use only on the writer's thread."""

    async def submit(self, submission: Submission) -> Accepted:
        return await self._writer.write(partial(submit, submission, self._written), submission.conversation.id, sync=True)

    async def claim(self, run: str, owner: str, *, statuses: frozenset[RunStatus], at_most: int = 0) -> Fence:
        return await self._writer.write(partial(_claim, run, owner, statuses, at_most))

    async def standing(self, run: str) -> RunSnapshot:
        return await self._reader.read(partial(run_snapshot, run, self._events))

    async def cancelled(self, runs: Collection[str]) -> frozenset[str]:
        return await self._reader.read(partial(cancelled_runs, dumps(sorted(runs))))

    async def interrupt(self, run: str, *, owner: str | None, fence: int) -> bool:
        return await self._writer.write(partial(_interrupt, run, owner, fence))

    async def withdraw(self, run: str) -> bool:
        return await self._writer.write(partial(_withdraw, run, self._written), sync=True)

    async def post(self, run: str, item: InboxItem) -> int:
        return await self._writer.write(lambda transaction: post(transaction, run, item), sync=True)

    async def answer(self, id: str, answer: Answer) -> Approval:
        return await self._writer.write(partial(_answer, id, answer), sync=True)


def _claim(id: str, owner: str, statuses: frozenset[RunStatus], at_most: int, transaction: Transaction) -> Fence:
    run = lookup.run(transaction, id)
    if run.id != id or run.status not in statuses:
        raise Busy(f"The run {run.id!r} is {run.status}, not {' or '.join(sorted(statuses))}.")
    if run.held:
        raise Busy(f"The run {run.id!r} waits inside its agent's process and still has its owner.")
    no = transaction.conversation_no(run.conversation)
    earlier = transaction.row(
        "SELECT id, status FROM run WHERE conversation = ? AND no <> ? AND (status IN ('running', 'waiting', 'interrupted')"
        " OR status = 'queued' AND no < ?) LIMIT 1",
        (no, run.no, run.no),
    )
    if earlier is not None:
        raise Busy(f"The run {run.id!r} is queued behind {earlier[0]!r}, which is {earlier[1]}.")
    if run.parent_run is None and at_run_limit(transaction, run.user, at_most):
        raise Busy(f"The run {run.id!r} is queued: {at_most} runs are already running.", fix="See limits.runs_per_user.")
    fence = transaction.row(
        "UPDATE run SET status = 'running', owner = ?, fence = fence + 1, started_at = coalesce(started_at, ?)"
        " WHERE no = ? RETURNING fence",
        (owner, transaction.now_ms, run.no),
    )[0]
    if run.started_at is None:  # it has no events yet, and others may have added events since it was queued
        head = transaction.row("SELECT next_seq FROM log_head WHERE conversation = ?", (no,))[0]
        transaction.execute("UPDATE run SET first_seq = ?, last_seq = ? WHERE no = ?", (head, head - 1, run.no))
        transaction.execute(
            "UPDATE message SET first_seq = ?, last_seq = ?, folded_through = ? WHERE id = ?", (head, head - 1, head - 1, run.message)
        )
    transaction.execute("UPDATE message SET status = 'streaming' WHERE id = ?", (run.message,))
    return Fence(run.conversation, run.id, run.message, fence)


def _interrupt(id: str, owner: str | None, fence: int, transaction: Transaction) -> bool:
    held = "id = ? AND (status IN ('running', 'queued') OR status = 'waiting' AND owner IS NOT NULL) AND owner IS ? AND fence = ?"
    waited = lookup.run(transaction, id).held
    row = transaction.row(
        f"UPDATE run SET status = 'interrupted', owner = NULL WHERE {held} AND NOT EXISTS (SELECT 1 FROM run AS earlier"
        " WHERE earlier.conversation = run.conversation AND earlier.no <> run.no"
        " AND (earlier.status IN ('running', 'waiting', 'interrupted')"
        " OR earlier.status = 'queued' AND earlier.no < run.no)) RETURNING message",
        (id, owner, fence),
    )
    if row is not None:
        transaction.execute("UPDATE message SET status = 'interrupted' WHERE id = ?", row)
        if waited:  # the asking process is gone; questions of moot's own loop outlive their process
            deny_open(transaction, id, "The agent that asked is gone.")
    elif owner is not None:
        transaction.execute(f"UPDATE run SET owner = NULL WHERE {held} AND status = 'queued'", (id, owner, fence))
    return row is not None


def _withdraw(id: str, events: Events, transaction: Transaction) -> bool:
    run = lookup.run(transaction, id)
    if run.id != id or run.status != "queued":
        return False
    supersede(transaction, events, transaction.conversation_no(run.conversation), id, WITHDRAWN)
    return True


def _answer(id: str, answer: Answer, transaction: Transaction) -> Approval:
    row = lookup.approval_row(transaction, id)
    if row is None:
        raise NotFound(f"No approval has the id {id!r}.")
    approval = approval_of(row)
    if approval.answer is not None:
        decision = "approved" if approval.answer.approved else "denied"
        raise Busy(f"The approval {id!r} was already {decision} by {approval.answer.answered_by}.")
    now = transaction.now_ms
    if approval.expires_at is not None and approval.expires_at <= now:
        raise Busy(f"The approval {id!r} has expired.")
    transaction.execute(
        "UPDATE approval SET approved = ?, option = ?, reason = ?, answered_by = ?, value = ?, answered_at = ?, patterns = ?,"
        " edited = ?, edited_digest = ? WHERE id = ?",
        (
            *(int(answer.approved), answer.option, answer.reason, answer.answered_by, optional(answer.value), now),
            *(optional(list(answer.patterns) or None), answer.arguments, answer.digest or None, id),
        ),
    )
    if answer.approved and answer.option == "conversation":
        conversation = transaction.conversation_no(lookup.run(transaction, approval.run).conversation)
        grants = [Grant(approval.tool, pattern, now, answer.answered_by) for pattern in answer.patterns]
        change_grants(transaction, conversation, lambda kept: [*kept, *(grant for grant in grants if grant not in kept)])
    post(transaction, approval.run, InboxItem("answer", {"approval": id, "approved": answer.approved}))
    continue_run(transaction, approval.run)
    return replace(approval, answer=answer)
