"""Storing a prompt, and ending inactive runs, in one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from moot.convert.exchanges import InterruptedExchange, close_open, settle_calls, totals
from moot.convert.fold import Folder
from moot.errors import Busy, LimitReached, NotFound, UsageError
from moot.plugins.registry import attribute
from moot.store import lookup
from moot.store.database.transaction import Transaction
from moot.store.log import messages
from moot.store.log.changes import Target, apply_change, deny_open
from moot.store.log.events import Events
from moot.store.log.messages import check_message
from moot.store.rows import EXCHANGE, IS_AT_WORK, exchange_of, message_of, plain
from moot.store.tasks import jobs
from moot.store.tree.conversations import insert_conversation
from moot.types.canonical import Json, JsonObject, dumps, empty, loads
from moot.types.chunk import abort, finish
from moot.types.conversation import TEMPORARY_MS, Conversation
from moot.types.event import Event
from moot.types.exchange import Ending, Failure
from moot.types.message import Message
from moot.types.store import Accepted, CloseExchange, End, Fence, Fold, InboxItem, Submission
from moot.types.task import TaskDue

SUPERSEDED = ("superseded", "superseded by a new prompt")
_CHECK, _INSERT = "moot.store.tasks.watchers:check", "moot.store.tasks.watchers:insert"
"""Loaded by name, because most prompts don't come from a task watcher."""

WITHDRAWN = ("cancelled", "cancelled before it started")


def supersede(transaction: Transaction, events: Events, conversation: int, run: str, why: tuple[str, str] = SUPERSEDED) -> None:
    """Deny the run's open approvals, close its exchange and message, and end it as cancelled; its fence becomes invalid.

    `why` contains a keyword to store as the reason, and a text for tool calls without output.
    """
    reason, text = why
    row: Any = transaction.row("UPDATE run SET fence = fence + 1 WHERE id = ? RETURNING fence, message", (run,))
    number, message_id = row
    deny_open(transaction, run, reason)
    message = events.folded(transaction, message_of(lookup.message_row(transaction, message_id)), conversation)
    target = Target(Fence("", run, message_id, number), conversation, 0)
    cut = _cut(transaction, run)

    def journal() -> Iterator[Event]:
        for event in events.all(transaction, conversation, run):
            if cut is not None:
                cut.take(event)
            yield event

    usage, cost, model = totals(journal())
    folder = Folder(message.parts, message.metadata)
    if cut is not None and cut.is_open:
        end = cut.end(run, Failure(text, kind="cut"))
        usage += Ending.from_json(end.body if isinstance(end.body, dict) else {}).usage
        transaction.add(conversation, (end,))
        apply_change(transaction, target, CloseExchange(str(end.exchange), "cut"))
        folder.feed_all(end.chunks)
    closing = (*close_open(parts := folder.parts()), *settle_calls(parts, text), abort(reason), finish("other"))
    body: JsonObject = {"status": "cancelled", "finish_reason": "other"}
    seq = transaction.add(conversation, (Event("chunks", closing, run=run, phase="end", key="run", body=body),))[-1]
    folder.feed_all(closing)
    target = replace(target, through=seq)
    apply_change(transaction, target, Fold(folder.parts(), folder.metadata(), "cancelled"))
    apply_change(transaction, target, End("cancelled", None, usage, cost, model=model))


def _cut(transaction: Transaction, run: str) -> InterruptedExchange | None:
    """Return the run's last exchange if it was cut off; earlier ones without an end were abandoned when the run was resumed."""
    row: Any = transaction.row(f"SELECT {EXCHANGE} WHERE e.run = ? AND e.purpose = 'answer' ORDER BY e.rowid DESC LIMIT 1", (run,))
    exchange = None if row is None else exchange_of(row)
    return (
        None if exchange is None or exchange.ended is not None else InterruptedExchange(exchange.id, exchange.converter, exchange.options)
    )


@dataclass(frozen=True, slots=True)
class _State:
    live: tuple[str, str] | None = None
    """The id and message of the run that is working, or is waiting and will continue by itself."""
    idle: tuple[str, ...] = ()
    """Inactive runs, newest first, which the prompt replaces."""
    last: str | None = None
    """The message after which a queued prompt is placed."""

    @property
    def busy(self) -> bool:
        return self.last is not None


def submit(submission: Submission, events: Events, transaction: Transaction) -> Accepted:
    """Store the prompt (see `Records.submit`). Raise Busy, NotFound or UsageError if that is impossible."""
    due = submission.due
    if isinstance(due, TaskDue):
        attribute(_CHECK)(transaction, due)
    elif due is not None:
        jobs.check(transaction, due)
    accepted = _submit(submission, events, transaction)
    made = {"run": accepted.run.id, "conversation": accepted.conversation.id}
    if isinstance(due, TaskDue):
        attribute(_INSERT)(transaction, due, **made)
    elif due is not None:
        jobs.insert(transaction, due, "started", **made)
    return accepted


def store_only(submission: Submission, transaction: Transaction) -> Conversation:
    """Store the prompt without a run (see `Records.note`)."""
    assert submission.user is not None and not isinstance(submission.due, TaskDue)
    if submission.due is not None:
        jobs.check(transaction, submission.due)
    conversation = _conversation(transaction, submission.conversation, remember=False)
    now = transaction.now_ms
    user = replace(submission.user, conversation=conversation.id, parent=conversation.head, status="finished", created_at=now)
    messages.add(transaction, conversation.no, user)
    if submission.due is not None:
        jobs.insert(transaction, submission.due, "stored", conversation=conversation.id)
    return lookup.conversation(transaction, conversation.id)


def _submit(submission: Submission, events: Events, transaction: Transaction) -> Accepted:
    if submission.may_exist and (stored := _stored(transaction, submission)) is not None:
        return stored
    conversation = _conversation(transaction, submission.conversation, remember=submission.remember)
    if (repeated := _repeated(transaction, conversation, submission)) is not None:
        return repeated
    found: list[Any] = transaction.execute(
        "SELECT id, message, status, status = 'queued' AND (owner IS NOT NULL OR on_crash = 'resume')"
        " FROM run WHERE conversation = ? AND status IN ('queued', 'running', 'waiting', 'interrupted') ORDER BY no",
        (conversation.no,),
    ).fetchall()
    waits = submission.continuing
    rows = [(id, message, status == "running" or (status == "waiting" and id in waits), queued) for id, message, status, queued in found]
    live = next(((id, message) for id, message, is_live, _ in rows if is_live), None)
    idle = tuple(id for id, _, is_live, is_queued in reversed(rows) if not (is_live or is_queued))
    busy = [message for _, message, is_live, is_queued in rows if is_live or is_queued]
    state = _State(live, idle, _end_of_queue(transaction, conversation, busy[-1]) if busy else None)
    if state.busy and submission.on_busy == "reject":
        raise Busy(
            f"The conversation {conversation.id!r} has an unfinished run.",
            fix="Wait for it, use --on-busy with queue, steer or interrupt, or stop it with `moot chat stop`.",
        )
    if state.live is not None and submission.on_busy == "steer":
        return _steer(transaction, conversation, submission, state.live[0])
    for run in state.idle:
        supersede(transaction, events, conversation.no, run)
    if state.idle:  # their unread messages are now at the end of the branch
        conversation = lookup.conversation(transaction, conversation.id)
    return _store(transaction, conversation, submission, state)


def _end_of_queue(transaction: Transaction, conversation: Conversation, answer: str) -> str:
    """Return the message to which a queued prompt is added: the last queued answer, or the messages after it that its run did not read."""
    head = conversation.head
    return head if head is not None and messages.is_behind(transaction, head, answer) else answer


def _conversation(transaction: Transaction, wanted: Conversation, *, remember: bool) -> Conversation:
    found = lookup.conversation_by(transaction, "id", wanted.id)
    if found is None and wanted.key is not None:
        found = lookup.conversation_by(transaction, "key", wanted.key, wanted.owner)
    if found is None and wanted.client_id is not None:
        found = lookup.conversation_by(transaction, "client_id", wanted.client_id, wanted.owner)
    if found is None:
        return insert_conversation(transaction, wanted)
    if found.deleted_at is not None:
        raise NotFound(f"The conversation {found.id!r} is deleted.", fix=f"Restore it with `moot chat restore {found.id}`.")
    if found.expires_at is not None:
        transaction.execute("UPDATE conversation SET expires_at = ? WHERE no = ?", (transaction.now_ms + TEMPORARY_MS, found.no))
    if remember:
        settings = {**found.settings, "model": wanted.model}
        if not wanted.model:
            del settings["model"]
        transaction.execute(
            "UPDATE conversation SET agent = ?, agent_type = ?, model = ?, settings = ? WHERE no = ?",
            (wanted.agent, wanted.agent_type, wanted.model, dumps(settings), found.no),
        )
    if wanted.directory and not found.directory:  # an imported conversation may have none
        transaction.execute("UPDATE conversation SET directory = ? WHERE no = ?", (os.fsencode(wanted.directory), found.no))
    return found


_STEERED_BY = (
    "SELECT run FROM inbox WHERE no > (SELECT coalesce(max(no), 0) - 10000 FROM inbox) AND kind = 'steer'"
    " AND json_extract(CAST(body AS TEXT), '$.id') = ? LIMIT 1"
)


def _stored(transaction: Transaction, submission: Submission) -> Accepted | None:
    """Return the earlier result if this submission is already stored, otherwise None. The run's events come after the returned seq."""
    if transaction.row("SELECT 1 FROM run WHERE id = ?", (submission.run.id,)) is not None:
        run = lookup.run(transaction, submission.run.id)
        return Accepted(lookup.conversation(transaction, run.conversation), run, run.first_seq - 1)
    steered: Any = None if submission.user is None else transaction.row(_STEERED_BY, (submission.user.id,))
    if steered is None:
        return None
    run = lookup.run(transaction, steered[0])
    return Accepted(lookup.conversation(transaction, run.conversation), run, run.first_seq - 1, steered=True)


_STEERED = (  # among the newest items only: handled ones stay in the table
    "SELECT i.run FROM inbox AS i CROSS JOIN run AS r ON r.id = i.run"
    " WHERE i.no > (SELECT coalesce(max(no), 0) - 10000 FROM inbox) AND i.kind = 'steer' AND r.conversation = ?"
    " AND json_extract(CAST(i.body AS TEXT), '$.client_id') = ? LIMIT 1"
)
_PROMPTED = (
    "SELECT r.id, m.parts FROM message AS m JOIN message AS a ON a.parent_id = m.id JOIN run AS r ON r.message = a.id"
    " WHERE m.conversation = ? AND m.client_id = ? AND m.role = 'user' ORDER BY r.no DESC LIMIT 1"
)


def _repeated(transaction: Transaction, conversation: Conversation, submission: Submission) -> Accepted | None:
    """Return the earlier result if a client sent this prompt before, otherwise None. Clients resend a prompt if they get no response."""
    user = submission.user
    if user is None or user.client_id is None or submission.edits is not None:
        return None
    steered: Any = transaction.row(_STEERED, (conversation.no, user.client_id))
    found: Any = transaction.row(_PROMPTED, (conversation.no, user.client_id)) if steered is None else steered
    if found is None or (steered is None and loads(plain(found[1])) != list(user.parts)):
        return None
    last = transaction.row("SELECT next_seq - 1 FROM log_head WHERE conversation = ?", (conversation.no,))[0]
    return Accepted(conversation, lookup.run(transaction, found[0]), last, steered=steered is not None)


def _steer(transaction: Transaction, conversation: Conversation, submission: Submission, run: str) -> Accepted:
    if submission.user is None or submission.edits is not None:
        raise UsageError("Only new messages can be added to a running answer.", fix="Queue the prompt, or interrupt the answer.")
    user = submission.user
    if user.client_id is not None:
        messages.check_client_id(user.client_id)
    body: JsonObject = {"id": user.id, "client_id": user.client_id, "parts": list[Json](user.parts)}
    post(transaction, run, InboxItem("steer", body))
    last = transaction.row("SELECT next_seq - 1 FROM log_head WHERE conversation = ?", (conversation.no,))[0]
    return Accepted(conversation, lookup.run(transaction, run), last, steered=True)


def post(transaction: Transaction, run: str, item: InboxItem) -> int:
    """Add an item to the run's inbox and return its number. Raise NotFound, or Busy if the run has ended."""
    row = transaction.row("SELECT status FROM run WHERE id = ?", (run,))
    if row is None:
        raise NotFound(f"No run has the id {run!r}.")
    if row[0] in ("finished", "failed", "cancelled"):
        raise Busy(f"The run {run!r} has already ended with the status {row[0]!r}.")
    body = None if item.body is None else dumps(item.body)
    return transaction.row(
        "INSERT INTO inbox (run, kind, body, at) VALUES (?, ?, ?, ?) RETURNING no", (run, item.kind, body, item.at or transaction.now_ms)
    )[0]


def _store(transaction: Transaction, conversation: Conversation, submission: Submission, state: _State) -> Accepted:
    now = transaction.now_ms
    run, user = submission.run, None
    if submission.user is not None:
        user, prompt = _user_message(transaction, conversation, submission.user, submission.edits, state.last, now)
        parent, before = user.id, (prompt,)
    else:
        parent, before = _answered(transaction, conversation, submission.answers, state), ()
    tree = Event("tree", body={"op": "answer", "message": run.message, "parent": parent, "run": run.id})
    seqs = transaction.add(conversation.no, (*before, tree))
    seq = seqs[-1]
    if user is not None:
        messages.insert(transaction, conversation.no, messages.placed(user, seqs[0]))
    answer = Message(run.message, "assistant", parent=parent, run=run.id, status="streaming", created_at=now)
    answer = replace(messages.placed(answer, seq), first_seq=seq + 1)
    messages.insert(transaction, conversation.no, answer)
    messages.count(transaction, conversation.no, len(seqs), now, run.message)
    _check_children(transaction, submission)
    full = run.parent_run is None and at_run_limit(transaction, run.user, submission.at_most)
    claimed = submission.owner if state.last is None and not full else None
    no = _insert_run(transaction, conversation.no, submission, claimed is not None, seq, now)
    transaction.learn((conversation.id, conversation.no), (run.id, no))
    fence = Fence(conversation.id, run.id, run.message, 1) if claimed is not None else None
    interrupts = state.live[0] if state.live is not None and submission.on_busy == "interrupt" else None
    return Accepted(
        lookup.conversation(transaction, conversation.id), lookup.run(transaction, run.id), seq, fence, False, interrupts, state.idle
    )


_STARTED = (
    "SELECT count(*) FROM run AS r WHERE r.parent_run IN"
    " (SELECT p.id FROM run AS p WHERE p.conversation = (SELECT conversation FROM run WHERE id = ?))"
    f" AND (r.parent_run = ? OR {IS_AT_WORK})"
)
"""Number of sub-agents of a run, including those of earlier runs of its conversation that are still working."""
_CHILDREN_AT_WORK = f"SELECT count(*) FROM run AS r WHERE r.parent_run IS NOT NULL AND r.owner_id = ? AND {IS_AT_WORK}"


def _check_children(transaction: Transaction, submission: Submission) -> None:
    """Raise LimitReached if the run would exceed a limit on sub-agents, which are counted in the submitting transaction to avoid races."""
    run, (per_run, per_user) = submission.run, submission.children
    if run.parent_run is None:
        return
    started = transaction.row(_STARTED, (run.parent_run, run.parent_run))[0]
    if per_run and started >= per_run:
        raise LimitReached(f"This run has already started {started} sub-agents, the maximum.", fix="See limits.subagents_per_run.")
    count = transaction.row(_CHILDREN_AT_WORK, (run.user,))[0]
    if per_user and count >= per_user:
        raise LimitReached(f"{count} sub-agents are already running, the maximum for a user.", fix="See limits.subagents_per_user.")


def at_run_limit(transaction: Transaction, user: str, at_most: int) -> bool:
    """Return True if the user has `at_most` top-level runs running. Runs are counted in the claiming transaction to avoid races."""
    if not at_most:
        return False
    sql = "SELECT count(*) FROM run WHERE status = 'running' AND parent_run IS NULL AND owner_id = ?"
    return transaction.row(sql, (user,))[0] >= at_most


def _answered(transaction: Transaction, conversation: Conversation, answers: str | None, state: _State) -> str:
    if answers is not None:
        role, parent = check_message(transaction, conversation.no, answers)
        if role != "assistant":
            return answers  # for an assistant message, use its parent, so that the new answer becomes its sibling
        if parent is None:
            raise UsageError(
                f"The message {answers!r} is not an answer to a prompt, so it cannot be retried.", fix="Use `moot chat continue ID PROMPT`."
            )
        return parent
    return state.last or _last_prompt(transaction, conversation)


def _user_message(
    transaction: Transaction, conversation: Conversation, user: Message, edits: str | None, queued_after: str | None, now: int
) -> tuple[Message, Event]:
    parent, body = user.parent or queued_after or conversation.head, empty()
    if user.parent is not None:
        check_message(transaction, conversation.no, user.parent)
    if edits is not None:
        role, parent = check_message(transaction, conversation.no, edits)
        if role != "user":
            raise UsageError(f"The message {edits!r} is not a prompt; its role is {role}.", fix="Edit the prompt before it.")
        body["edits"] = edits
    message = replace(user, conversation=conversation.id, parent=parent, status="finished", created_at=user.created_at or now)
    return message, messages.message_event(message, body=body)


def _last_prompt(transaction: Transaction, conversation: Conversation) -> str:
    at = conversation.head
    while at is not None:
        row = transaction.row("SELECT role, parent_id, deleted_at FROM message WHERE id = ?", (at,))
        if row is None:
            break
        if row[0] == "user" and row[2] is None:
            return at
        at = row[1]
    raise UsageError(f"The conversation {conversation.id!r} has no prompt to answer.", fix="Add a prompt.")


def _insert_run(transaction: Transaction, conversation: int, submission: Submission, claimed: bool, seq: int, now: int) -> int:
    run = submission.run
    inserted = transaction.execute(
        "INSERT INTO run (id, conversation, message, owner_id, agent, agent_type, agent_session_id, model, trigger, parent_run, status,"
        " on_crash, owner, fence, settings, usage, created_at, started_at, first_seq, last_seq)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(run.id, conversation, run.message, run.user, run.agent, run.agent_type, run.agent_session_id, run.model, run.trigger),
            *(run.parent_run, "running" if claimed else "queued", run.on_crash),
            submission.owner,  # a queued run has an owner too: the process that waits to start it
            *(int(claimed), dumps(run.settings), b"{}", run.created_at or now, now if claimed else None, seq + 1, seq),
        ),
    )
    assert inserted.lastrowid is not None
    return inserted.lastrowid
