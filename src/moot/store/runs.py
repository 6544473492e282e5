"""Runs, their inboxes and approvals, and a conversation's permissions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
    IS_OPEN,
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
from moot.store.submission import WITHDRAWN, at_run_limit, post, store_only, submit, supersede
from moot.store.tree.projects import project_of
from moot.types.approval import Answer, Approval, Grant
from moot.types.canonical import dumps
from moot.types.children import BACKGROUND
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.run import OPEN, Run, RunStatus
from moot.types.store import Accepted, Fence, InboxItem, RunSnapshot, Submission


class SqliteGrants:
    """The SQLite implementation of `Grants`."""

    def __init__(self, writer: Writer, owner: str | None = None) -> None:
        self._writer = writer
        self._owner = owner

    async def revoke(self, conversation: str, *, tool: str, match: str) -> bool:
        def work(transaction: Transaction) -> bool:
            no = transaction.conversation_no(lookup.find_conversation(transaction, conversation, self._owner).id)
            where = "conversation = ? AND tool = ? AND match = ?"
            if not transaction.execute(f"DELETE FROM permission_grant WHERE {where}", (no, tool, match)).rowcount:
                return False
            transaction.add(no, (Event("meta", body={"revoked": {"tool": tool, "match": match}}),))
            return True

        return await self._writer.write(work, sync=True)


def _grant(transaction: Transaction, conversation: int, grants: Iterable[Grant]) -> None:
    """Store grants that the conversation does not have yet."""
    for grant in grants:
        known = "SELECT 1 FROM permission_grant WHERE conversation = ? AND tool = ? AND match = ?"
        if transaction.execute(known, (conversation, grant.tool, grant.match)).fetchone() is None:
            transaction.add(conversation, (Event("meta", body={"granted": grant.to_json()}),))
            transaction.execute(
                "INSERT INTO permission_grant (conversation, tool, match, granted_at, granted_by) VALUES (?, ?, ?, ?, ?)",
                (conversation, grant.tool, grant.match, grant.at, grant.by),
            )


_INBOX = "SELECT kind, body, no, at FROM inbox WHERE run = ? AND taken_at IS NULL ORDER BY no"
_ANSWERED = "SELECT id FROM approval WHERE run = ? AND approved IS NOT NULL"
_CALLED_OFF = "SELECT DISTINCT run FROM inbox WHERE run IN (SELECT value FROM json_each(?)) AND kind = 'cancel' AND taken_at IS NULL"
_IN_BACKGROUND = f"json_extract(CAST(r.settings AS TEXT), '$.{BACKGROUND}') IS 1"
_IS_AWAITED = f"{IS_OPEN} AND NOT {_IN_BACKGROUND}"
"""The condition for a sub-agent's run that has not ended and that its parent is waiting for."""
_PARKED = (
    "SELECT p.id, NOT EXISTS (SELECT 1 FROM approval AS a WHERE a.run = p.id AND a.approved IS NULL)"
    " AND (EXISTS (SELECT 1 FROM inbox AS i WHERE i.run = p.id AND i.kind = 'answer' AND i.taken_at IS NULL)"
    f" OR p.awaits = 'run' AND NOT EXISTS (SELECT 1 FROM run AS r WHERE r.parent_run = p.id AND {_IS_AWAITED}))"
    " FROM run AS p WHERE p.id IN (SELECT value FROM json_each(?)) AND p.status = 'waiting' AND p.owner IS NULL"
)
_CHILD_OWNERS = (
    "WITH RECURSIVE below (id) AS (SELECT id FROM run WHERE parent_run IN (SELECT value FROM json_each(?))"
    " UNION SELECT c.id FROM run AS c JOIN below AS b ON c.parent_run = b.id)"
    f" SELECT r.id, r.owner FROM below AS b JOIN run AS r ON r.id = b.id WHERE {IS_OPEN}"
    " AND (r.owner IS NOT NULL OR r.status = 'interrupted')"
)


def run_snapshot(id: str, events: Events, queries: Queries) -> RunSnapshot:
    """Return the state of the run with exactly this id. Raise NotFound if there is none."""
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
        bool(queries.execute(_HAS_BACKGROUND, (conversation.id,)).fetchone()[0]),
    )


def _item(row: Any) -> InboxItem:
    kind, body, no, at = row
    return InboxItem(kind, parse_stored(body) if body is not None else None, no, at)


def cancelled_runs(runs: bytes, queries: Queries) -> frozenset[str]:
    """Return the runs (given as a JSON array of ids) that have a cancel in their inbox."""
    return frozenset(found[0] for found in queries.execute(_CALLED_OFF, (runs.decode(),)))


_TREE = "WITH RECURSIVE tree (id) AS (VALUES (?) UNION SELECT r.id FROM run AS r JOIN tree AS t ON r.parent_run = t.id) SELECT id FROM tree"
"""Selects the ids of a run and of all its sub-agents' runs, at any depth."""
_RUNS_OF = "SELECT p.id FROM run AS p WHERE p.conversation = (SELECT no FROM conversation WHERE id = ?)"

_HAS_BACKGROUND = f"SELECT EXISTS (SELECT 1 FROM run AS r WHERE r.parent_run IN ({_RUNS_OF}) AND {_IN_BACKGROUND})"


class SqliteRunReader:
    """The SQLite implementation of `RunReader`."""

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
                wheres.append(IS_OPEN)
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

    async def children(self, run: str = "", *, conversation: str = "", tree: bool = False) -> list[Run]:
        where = f"r.parent_run IN ({_TREE})" if tree else f"r.parent_run IN ({_RUNS_OF})" if conversation else "r.parent_run = ?"
        sql = f"SELECT {RUN} FROM {RUN_TABLES} WHERE {where}{CONVERSATION_OWNED} ORDER BY r.no"
        return await self._reader.rows(sql, (conversation or run, self._owner), run_of)

    async def approvals(
        self, *, run: str | None = None, conversation: str | None = None, open_only: bool = True, tree: bool = False
    ) -> list[Approval]:
        wheres = ["approved IS NULL"] if open_only else ["true"]
        values: list[str] = []
        if run is not None:
            wheres.append(f"run IN ({_TREE})" if tree else "run = ?")
            values.append(run)
        if conversation is not None:
            wheres.append(f"run IN (SELECT r.id FROM {RUN_TABLES} WHERE c.id = ?)")
            values.append(conversation)
        sql = f"SELECT {APPROVAL} FROM approval WHERE {' AND '.join(wheres)}{APPROVAL_OWNED} ORDER BY asked_at, rowid"
        return await self._reader.rows(sql, (*values, self._owner), approval_of)

    async def exchange(self, id: str) -> Exchange | None:
        return await self._reader.row(f"SELECT {EXCHANGE} WHERE e.id = ?{CONVERSATION_OWNED}", (id, self._owner), exchange_of)


class RunRecords(SqliteRunReader):
    """The SQLite implementation of `Records`."""

    def __init__(self, writer: Writer, reader: Reader, events: Events) -> None:
        super().__init__(reader)
        self._writer = writer
        self._events = events
        self._written = Events()
        """A reader of events for the writer's thread only."""

    async def submit(self, submission: Submission) -> Accepted:
        return await self._writer.write(partial(submit, submission, self._written), submission.conversation.id, sync=True)

    async def note(self, submission: Submission) -> Conversation:
        return await self._writer.write(partial(store_only, submission), submission.conversation.id, sync=True)

    async def claim(self, run: str, owner: str, *, statuses: frozenset[RunStatus], at_most: int = 0) -> Fence:
        return await self._writer.write(partial(_claim, run, owner, statuses, at_most))

    async def snapshot(self, run: str) -> RunSnapshot:
        return await self._reader.read(partial(run_snapshot, run, self._events))

    async def cancelled(self, runs: Collection[str]) -> frozenset[str]:
        return await self._reader.read(partial(cancelled_runs, dumps(sorted(runs))))

    async def parked(self, runs: Collection[str]) -> dict[str, bool]:
        return dict(await self._reader.rows(_PARKED, (dumps(sorted(runs)).decode(),), lambda row: (str(row[0]), bool(row[1]))))

    async def child_owners(self, runs: Collection[str]) -> dict[str, str | None]:
        return dict(await self._reader.rows(_CHILD_OWNERS, (dumps(sorted(runs)).decode(),), tuple[str, "str | None"]))

    async def interrupt(self, run: str, *, owner: str | None, fence: int) -> bool:
        return await self._writer.write(partial(_interrupt, run, owner, fence))

    async def withdraw(self, run: str) -> bool:
        return await self._writer.write(partial(_withdraw, run, self._written), sync=True)

    async def withdraw_steers(self, run: str, message: str | None = None) -> list[InboxItem]:
        return await self._writer.write(partial(_withdraw_steers, run, message), sync=True)

    async def post(self, run: str, item: InboxItem) -> int:
        return await self._writer.write(lambda transaction: post(transaction, run, item), sync=True)

    async def answer(self, id: str, answer: Answer) -> Approval:
        return await self._writer.write(partial(_answer, id, answer), sync=True)


def _claim(id: str, owner: str, statuses: frozenset[RunStatus], at_most: int, transaction: Transaction) -> Fence:
    run = lookup.run(transaction, id)
    if run.id != id or run.status not in statuses:
        raise Busy(f"The run {run.id!r} has the status {run.status!r}; expected {' or '.join(map(repr, sorted(statuses)))}.")
    if run.held:
        raise Busy(f"The run {run.id!r} is waiting inside its agent's process, so no other process can continue it.")
    no = transaction.conversation_no(run.conversation)
    earlier = transaction.row(
        "SELECT id, status FROM run WHERE conversation = ? AND no <> ? AND (status IN ('running', 'waiting', 'interrupted')"
        " OR status = 'queued' AND no < ?) LIMIT 1",
        (no, run.no, run.no),
    )
    if earlier is not None:
        raise Busy(f"The run {run.id!r} is queued behind the run {earlier[0]!r}, which is {earlier[1]}.")
    if run.parent_run is None and at_run_limit(transaction, run.user, at_most):
        raise Busy(f"The run {run.id!r} is queued: {at_most} runs are already running.", fix="See limits.runs_per_user.")
    fence = transaction.row(
        "UPDATE run SET status = 'running', awaits = NULL, wake_at = NULL, owner = ?, fence = fence + 1,"
        " started_at = coalesce(started_at, ?) WHERE no = ? RETURNING fence",
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
        f"UPDATE run SET status = 'interrupted', owner = NULL, awaits = NULL WHERE {held} AND NOT EXISTS (SELECT 1 FROM run AS earlier"
        " WHERE earlier.conversation = run.conversation AND earlier.no <> run.no"
        " AND (earlier.status IN ('running', 'waiting', 'interrupted')"
        " OR earlier.status = 'queued' AND earlier.no < run.no)) RETURNING message",
        (id, owner, fence),
    )
    if row is not None:
        transaction.execute("UPDATE message SET status = 'interrupted' WHERE id = ?", row)
        if waited:  # the agent's process is gone; only questions of moot's own loop outlive their process
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


def _withdraw_steers(run: str, message: str | None, transaction: Transaction) -> list[InboxItem]:
    items = [item for item in map(_item, transaction.execute(_INBOX, (run,))) if item.kind == "steer"]
    withdrawn = [item for item in items if message is None or (isinstance(item.body, dict) and item.body.get("id") == message)]
    for item in withdrawn:
        transaction.execute("UPDATE inbox SET taken_at = ? WHERE no = ?", (transaction.now_ms, item.no))
    return withdrawn


def _answer(id: str, answer: Answer, transaction: Transaction) -> Approval:
    row = lookup.approval_row(transaction, id)
    if row is None:
        raise NotFound(f"No approval has the id {id!r}.")
    approval = approval_of(row)
    if approval.answer is not None:
        decision = "approved" if approval.answer.approved else "denied"
        raise Busy(f"The approval {id!r} has already been {decision} by {approval.answer.answered_by}.")
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
        _grant(transaction, conversation, (Grant(approval.tool, pattern, now, answer.answered_by) for pattern in answer.patterns))
    if answer.approved and answer.option == "edits":
        _allow_edits(transaction, lookup.run(transaction, approval.run))
    post(transaction, approval.run, InboxItem("answer", {"approval": id, "approved": answer.approved}))
    continue_run(transaction, approval.run)
    return replace(approval, answer=answer)


def _allow_edits(transaction: Transaction, run: Run) -> None:
    """Set the mode `edits` in the run's conversation, and in the run if its prompt set a mode."""
    conversation = transaction.conversation_no(run.conversation)
    settings = parse_stored_object(transaction.row("SELECT settings FROM conversation WHERE no = ?", (conversation,))[0])
    settings["mode"] = "edits"
    transaction.add(conversation, (Event("meta", body={"settings": settings}),))
    transaction.execute("UPDATE conversation SET settings = ? WHERE no = ?", (dumps(settings), conversation))
    if "mode" in run.settings:
        transaction.execute("UPDATE run SET settings = ? WHERE id = ?", (dumps({**run.settings, "mode": "edits"}), run.id))
