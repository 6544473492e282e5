"""Storing a prompt: conversation, user message, assistant message, run and head in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from moot.errors import Busy, NotFound, UsageError
from moot.store import lookup, messages
from moot.store.events import Events
from moot.store.messages import check_message, insert_conversation
from moot.store.supersede import supersede
from moot.store.transaction import Transaction
from moot.types.canonical import dumps, empty
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.store import Accepted, Fence, InboxItem, Submission

__all__ = ["no_room", "post", "submit"]


@dataclass(frozen=True, slots=True)
class _State:
    """The runs in the conversation before the new prompt."""

    running: tuple[str, str] | None = None
    """Id and message of the running run."""
    idle: tuple[str, ...] = ()
    """Inactive runs, newest first, which the prompt replaces."""
    last: str | None = None
    """The assistant message after which a queued prompt is placed."""

    @property
    def busy(self) -> bool:
        return self.last is not None


def submit(submission: Submission, events: Events, transaction: Transaction) -> Accepted:
    """Store the prompt, see `Records.submit`. Raise Busy, NotFound or UsageError."""
    conversation = _conversation(transaction, submission.conversation, remember=submission.remember)
    state = _state(transaction, conversation.no)
    if state.busy and submission.on_busy == "reject":
        raise Busy(
            f"The conversation {conversation.id!r} has an unfinished run.",
            fix="Wait for it, use --on-busy with queue, steer or interrupt, or stop it with `moot chat stop`.",
        )
    if state.running is not None and submission.on_busy == "steer":
        return _steer(transaction, conversation, submission, state.running[0])
    for run in state.idle:
        supersede(transaction, events, conversation.no, run)
    return _store(transaction, conversation, submission, state)


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
    if remember:
        transaction.execute(
            "UPDATE conversation SET agent = ?, agent_type = ?, model = ? WHERE no = ?",
            (wanted.agent, wanted.agent_type, wanted.model, found.no),
        )
    return found


def _state(transaction: Transaction, conversation: int) -> _State:
    rows: list[Any] = transaction.execute(
        "SELECT id, message, status, status = 'running' OR status = 'queued' AND (owner IS NOT NULL OR on_crash = 'resume')"
        " FROM run WHERE conversation = ? AND status IN ('queued', 'running', 'waiting', 'interrupted') ORDER BY no",
        (conversation,),
    ).fetchall()
    running = next(((id, message) for id, message, status, _ in rows if status == "running"), None)
    idle = tuple(id for id, _, _, busy in reversed(rows) if not busy)
    last = [message for _, message, _, busy in rows if busy]
    return _State(running, idle, last[-1] if last else None)


def _steer(transaction: Transaction, conversation: Conversation, submission: Submission, run: str) -> Accepted:
    if submission.user is None or submission.edits is not None:
        raise UsageError("A running answer accepts only new messages.", fix="Queue the prompt, or interrupt the answer.")
    user = submission.user
    body = {"id": user.id, "parts": list(user.parts)}
    post(transaction, run, InboxItem("steer", body))  # type: ignore[arg-type]
    last = transaction.row("SELECT next_seq - 1 FROM log_head WHERE conversation = ?", (conversation.no,))[0]
    return Accepted(conversation, lookup.run(transaction, run), last, steered=True)


def post(transaction: Transaction, run: str, item: InboxItem) -> int:
    """Add an item to the run's inbox and return its number. Raise NotFound, or Busy if the run has ended."""
    row = transaction.row("SELECT status FROM run WHERE id = ?", (run,))
    if row is None:
        raise NotFound(f"No run has the id {run!r}.")
    if row[0] in ("finished", "failed", "cancelled"):
        raise Busy(f"The run {run!r} has ended: it is {row[0]}.")
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
    full = run.parent_run is None and no_room(transaction, run.user, submission.at_most)
    claimed = submission.owner if state.last is None and not full else None
    no = _insert_run(transaction, conversation.no, submission, claimed is not None, seq, now)
    transaction.learn((conversation.id, conversation.no), (run.id, no))
    fence = Fence(conversation.id, run.id, run.message, 1) if claimed is not None else None
    interrupts = state.running[0] if state.running is not None and submission.on_busy == "interrupt" else None
    return Accepted(
        lookup.conversation(transaction, conversation.id), lookup.run(transaction, run.id), seq, fence, False, interrupts, state.idle
    )


def no_room(transaction: Transaction, user: str, at_most: int) -> bool:
    """Return True if the user has `at_most` top-level runs running. Counted in the claiming transaction, so the limit holds in races."""
    if not at_most:
        return False
    sql = "SELECT count(*) FROM run WHERE status = 'running' AND parent_run IS NULL AND owner_id = ?"
    return transaction.row(sql, (user,))[0] >= at_most


def _answered(transaction: Transaction, conversation: Conversation, answers: str | None, state: _State) -> str:
    """Return the parent of the answer if the prompt has no new message."""
    if answers is not None:
        return _question(transaction, conversation, answers)
    return state.last or _last_prompt(transaction, conversation)


def _user_message(
    transaction: Transaction, conversation: Conversation, user: Message, edits: str | None, queued_after: str | None, now: int
) -> tuple[Message, Event]:
    """Return the prompt as a stored message, and its event."""
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


def _question(transaction: Transaction, conversation: Conversation, id: str) -> str:
    """Return the parent of a new answer to a message; for an answer, its own parent, so that the new one becomes its sibling."""
    role, parent = check_message(transaction, conversation.no, id)
    if role != "assistant":
        return id
    if parent is None:
        raise UsageError(f"The message {id!r} answers no prompt and cannot be retried.", fix="Use `moot chat continue ID PROMPT`.")
    return parent


def _last_prompt(transaction: Transaction, conversation: Conversation) -> str:
    """Return the last user message of the shown branch."""
    at = conversation.head
    while at is not None:
        row = transaction.row("SELECT role, parent_id, deleted_at FROM message WHERE id = ?", (at,))
        if row is None:
            break
        if row[0] == "user" and row[2] is None:
            return at
        at = row[1]
    raise UsageError(f"The conversation {conversation.id!r} has no prompt to answer.", fix="Give a prompt.")


def _insert_run(transaction: Transaction, conversation: int, submission: Submission, claimed: bool, seq: int, now: int) -> int:
    """Insert the run and return its number."""
    run = submission.run
    inserted = transaction.execute(
        "INSERT INTO run (id, conversation, message, owner_id, agent, agent_type, agent_session_id, model, trigger, parent_run, status,"
        " on_crash, owner, fence, settings, usage, created_at, started_at, first_seq, last_seq)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(run.id, conversation, run.message, run.user, run.agent, run.agent_type, run.agent_session_id, run.model, run.trigger),
            *(run.parent_run, "running" if claimed else "queued", run.on_crash),
            submission.owner,  # a queued run has an owner too: the process that waits for its turn
            *(int(claimed), dumps(run.settings), b"{}", run.created_at or now, now if claimed else None, seq + 1, seq),
        ),
    )
    assert inserted.lastrowid is not None
    return inserted.lastrowid
