"""The transaction that stores a prompt: conversation, user message, assistant message, run and head, or none of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, LiteralString

from moot.errors import Busy, NotFound, UsageError
from moot.store import lookup, messages
from moot.store.connect import Queries
from moot.store.events import Events
from moot.store.projects import holding, settled
from moot.store.rows import CONVERSATION, conversation_row, placeholders
from moot.store.supersede import supersede
from moot.store.transaction import Transaction
from moot.types.canonical import dumps, empty
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.store import Accepted, Fence, InboxItem, Submission

__all__ = ["check_message", "new_conversation", "no_room", "post", "submit"]


@dataclass(frozen=True, slots=True)
class _Standing:
    """What stands in the conversation before the new prompt."""

    running: tuple[str, str] | None = None
    """Id and message of the run that works now."""
    idle: tuple[str, ...] = ()
    """Runs that nobody works on, the newest first: their place can be taken."""
    last: str | None = None
    """The assistant message that a queued prompt comes after."""

    @property
    def busy(self) -> bool:
        return self.last is not None


def submit(submission: Submission, events: Events, transaction: Transaction) -> Accepted:
    """Stores the prompt as `Records.submit` promises. Raises Busy, NotFound, UsageError."""
    conversation = _conversation(transaction, submission.conversation, remember=submission.remember)
    standing = _standing(transaction, conversation.no)
    if standing.busy and submission.on_busy == "reject":
        raise Busy(
            f"the conversation {conversation.id!r} has a run that has not ended",
            fix="wait for it, choose with --on-busy queue, steer or interrupt, or stop it with `moot chat stop`",
        )
    if standing.running is not None and submission.on_busy == "steer":
        return _steer(transaction, conversation, submission, standing.running[0])
    for run in standing.idle:
        supersede(transaction, events, conversation.no, run)
    return _store(transaction, conversation, submission, standing)


def _conversation(transaction: Transaction, wanted: Conversation, *, remember: bool) -> Conversation:
    found = lookup.conversation_by(transaction, "id", wanted.id)
    if found is None and wanted.key is not None:
        found = lookup.conversation_by(transaction, "key", wanted.key, wanted.owner)
    if found is None and wanted.client_id is not None:
        found = lookup.conversation_by(transaction, "client_id", wanted.client_id, wanted.owner)
    if found is None:
        return _insert_conversation(transaction, wanted)
    if found.deleted_at is not None:
        raise NotFound(f"the conversation {found.id!r} is deleted", fix=f"bring it back with `moot chat restore {found.id}`")
    if remember:
        transaction.execute(
            "UPDATE conversation SET agent = ?, agent_type = ?, model = ? WHERE no = ?",
            (wanted.agent, wanted.agent_type, wanted.model, found.no),
        )
    return found


def new_conversation(transaction: Transaction, wanted: Conversation) -> Conversation:
    """Its row and its place in the log; what comes back has its `no` and times. Raises Busy when id, key or client id is taken."""
    taken: tuple[tuple[LiteralString, str | None, str | None], ...] = (
        ("id", wanted.id, None),
        ("key", wanted.key, wanted.owner),
        ("client_id", wanted.client_id, wanted.owner),
    )
    for name, value, theirs in taken:
        if value is not None and lookup.conversation_by(transaction, name, value, theirs):
            raise Busy(f"a conversation with the {name.replace('_', ' ')} {value!r} exists already")
    _insert_conversation(transaction, wanted)
    return lookup.conversation(transaction, wanted.id)


def _insert_conversation(transaction: Transaction, wanted: Conversation) -> Conversation:
    """One whose names are free."""
    now = transaction.now_ms
    created = wanted.created_at or now
    place = wanted.directory, wanted.owner
    project = settled(transaction, wanted.project, wanted.owner) if wanted.project else holding(transaction, *place)
    value = replace(wanted, project=project, created_at=created, updated_at=wanted.updated_at or created)
    columns = CONVERSATION.replace("no, ", "", 1)
    no = transaction.execute(f"INSERT INTO conversation ({columns}) VALUES ({placeholders(columns)})", conversation_row(value)).lastrowid
    transaction.execute("INSERT INTO log_head (conversation) VALUES (?)", (no,))
    assert no is not None
    return replace(value, no=no)


def _standing(transaction: Transaction, conversation: int) -> _Standing:
    rows: list[Any] = transaction.execute(
        "SELECT id, message, status, status = 'running' OR status = 'queued' AND (owner IS NOT NULL OR on_crash = 'resume')"
        " FROM run WHERE conversation = ? AND status IN ('queued', 'running', 'waiting', 'interrupted') ORDER BY no",
        (conversation,),
    ).fetchall()
    running = next(((id, message) for id, message, status, _ in rows if status == "running"), None)
    idle = tuple(id for id, _, _, busy in reversed(rows) if not busy)
    last = [message for _, message, _, busy in rows if busy]
    return _Standing(running, idle, last[-1] if last else None)


def _steer(transaction: Transaction, conversation: Conversation, submission: Submission, run: str) -> Accepted:
    if submission.user is None or submission.edits is not None:
        raise UsageError("only something new can be said to the running answer", fix="queue it, or interrupt the answer")
    user = submission.user
    body = {"id": user.id, "parts": list(user.parts)}
    post(transaction, run, InboxItem("steer", body))  # type: ignore[arg-type]
    last = transaction.row("SELECT next_seq - 1 FROM log_head WHERE conversation = ?", (conversation.no,))[0]
    return Accepted(conversation, lookup.run(transaction, run), last, steered=True)


def post(transaction: Transaction, run: str, item: InboxItem) -> int:
    """Raises NotFound, and Busy when the run has ended."""
    row = transaction.row("SELECT status FROM run WHERE id = ?", (run,))
    if row is None:
        raise NotFound(f"no run with the id {run!r}")
    if row[0] in ("finished", "failed", "cancelled"):
        raise Busy(f"the run {run!r} has ended: it is {row[0]}")
    said = None if item.body is None else dumps(item.body)
    return transaction.row(
        "INSERT INTO inbox (run, kind, body, at) VALUES (?, ?, ?, ?) RETURNING no", (run, item.kind, said, item.at or transaction.now_ms)
    )[0]


def _store(transaction: Transaction, conversation: Conversation, submission: Submission, standing: _Standing) -> Accepted:
    now = transaction.now_ms
    run, said = submission.run, None
    if submission.user is not None:
        said, prompt = _said(transaction, conversation, submission.user, submission.edits, standing.last, now)
        parent, before = said.id, (prompt,)
    else:
        parent, before = _answered(transaction, conversation, submission.answers, standing), ()
    tree = Event("tree", body={"op": "answer", "message": run.message, "parent": parent, "run": run.id})
    seqs = transaction.add(conversation.no, (*before, tree))
    seq = seqs[-1]
    if said is not None:
        messages.insert(transaction, conversation.no, messages.placed(said, seqs[0]))
    answer = Message(
        run.message,
        "assistant",
        parent=parent,
        run=run.id,
        status="streaming",
        first_seq=seq + 1,
        last_seq=seq,
        folded_through=seq,
        created_at=now,
    )
    messages.insert(transaction, conversation.no, answer)
    messages.count(transaction, conversation.no, len(seqs), now, run.message)
    full = run.parent_run is None and no_room(transaction, run.user, submission.at_most)
    claimed = submission.owner if standing.last is None and not full else None
    no = _insert_run(transaction, conversation.no, submission, claimed is not None, seq, now)
    transaction.learn((conversation.id, conversation.no), (run.id, no))
    fence = Fence(conversation.id, run.id, run.message, 1) if claimed is not None else None
    interrupts = standing.running[0] if standing.running is not None and submission.on_busy == "interrupt" else None
    return Accepted(
        lookup.conversation(transaction, conversation.id), lookup.run(transaction, run.id), seq, fence, False, interrupts, standing.idle
    )


def no_room(transaction: Transaction, user: str, at_most: int) -> bool:
    """Whether that user has that many top-level runs running; counted in the claiming transaction, so the limit holds in races."""
    if not at_most:
        return False
    sql = "SELECT count(*) FROM run WHERE status = 'running' AND parent_run IS NULL AND owner_id = ?"
    return transaction.row(sql, (user,))[0] >= at_most


def _answered(transaction: Transaction, conversation: Conversation, answers: str | None, standing: _Standing) -> str:
    """The message that the answer hangs behind where nothing new is said."""
    if answers is not None:
        return _question(transaction, conversation, answers)
    return standing.last or _last_prompt(transaction, conversation)


def _said(
    transaction: Transaction, conversation: Conversation, user: Message, edits: str | None, queued_after: str | None, now: int
) -> tuple[Message, Event]:
    """The prompt as it is stored, and its event."""
    parent, body = user.parent or queued_after or conversation.head, empty()
    if user.parent is not None:
        check_message(transaction, conversation.no, user.parent)
    if edits is not None:
        role, parent = check_message(transaction, conversation.no, edits)
        if role != "user":
            raise UsageError(f"the message {edits!r} is no prompt: it is the {role}'s", fix="edit the prompt before it")
        body["edits"] = edits
    said = replace(user, conversation=conversation.id, parent=parent, status="finished", created_at=user.created_at or now)
    return said, messages.message_event(said, body=body)


def check_message(queries: Queries, conversation: int, id: str) -> tuple[str, str | None]:
    """Role and parent of a message of that conversation. Raises NotFound when it is none of it."""
    row: Any = queries.execute("SELECT conversation, role, parent_id FROM message WHERE id = ?", (id,)).fetchone()
    if row is None or row[0] != conversation:
        raise NotFound(f"no message with the id {id!r} in that conversation", fix="moot chat tree ID")
    return row[1], row[2]


def _question(transaction: Transaction, conversation: Conversation, id: str) -> str:
    """What an answer to that message hangs behind; for an answer what it hangs behind itself, so that the new one is its sibling."""
    role, parent = check_message(transaction, conversation.no, id)
    if role != "assistant":
        return id
    if parent is None:
        raise UsageError(f"the message {id!r} answers nothing, so it can't be made once more", fix="moot chat continue ID PROMPT")
    return parent


def _last_prompt(transaction: Transaction, conversation: Conversation) -> str:
    """The last user message of the shown branch."""
    at = conversation.head
    while at is not None:
        row = transaction.row("SELECT role, parent_id, deleted_at FROM message WHERE id = ?", (at,))
        if row is None:
            break
        if row[0] == "user" and row[2] is None:
            return at
        at = row[1]
    raise UsageError(f"the conversation {conversation.id!r} has no prompt to answer", fix="give one")


def _insert_run(transaction: Transaction, conversation: int, submission: Submission, claimed: bool, seq: int, now: int) -> int:
    """The number of its row."""
    run = submission.run
    inserted = transaction.execute(
        "INSERT INTO run (id, conversation, message, owner_id, agent, agent_type, agent_session_id, model, trigger, parent_run, status,"
        " on_crash, owner, fence, settings, usage, created_at, started_at, first_seq, last_seq)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run.id,
            conversation,
            run.message,
            run.user,
            run.agent,
            run.agent_type,
            run.agent_session_id,
            run.model,
            run.trigger,
            run.parent_run,
            "running" if claimed else "queued",
            run.on_crash,
            submission.owner,  # of a queued one too: who waits for its turn
            int(claimed),
            dumps(run.settings),
            b"{}",
            run.created_at or now,
            now if claimed else None,
            seq + 1,
            seq,
        ),
    )
    assert inserted.lastrowid is not None
    return inserted.lastrowid
