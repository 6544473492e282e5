"""The changes that an append can make in addition to adding events: one function per change, run in the appending transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moot.convert.imports import usage_of_steps
from moot.errors import Busy, NotFound, StoreError
from moot.store import channels
from moot.store.database.blob_rows import insert_blobs
from moot.store.database.transaction import Transaction
from moot.store.log import messages
from moot.store.rows import INSERT_EXCHANGE, exchange_row, optional, parse_stored, parse_stored_object, parts_json
from moot.types.approval import BY_CLIENT
from moot.types.canonical import dumps
from moot.types.message import Message
from moot.types.store import (
    Ask,
    Change,
    CloseExchange,
    End,
    Expire,
    Fence,
    Fold,
    HandleInbox,
    HandOver,
    OpenExchange,
    Park,
    RecordUsage,
    SetSession,
    Use,
    WarnBudget,
)
from moot.types.usage import Usage


@dataclass(frozen=True, slots=True)
class Target:
    """The run that an append belongs to."""

    fence: Fence
    conversation: int
    through: int
    """Seq of the conversation's last event after the append."""
    has_file: Callable[[str], bool] | None = None
    """A function that says whether the large blob with a hash is on disk; None if no change stores blobs."""


def apply_change(transaction: Transaction, target: Target, change: Change) -> None:
    """Apply one change. Raise Busy, NotFound or StoreError if it is not possible."""
    _CHANGES[type(change)](transaction, target, change)


def _fold(transaction: Transaction, target: Target, change: Fold) -> None:
    changed = transaction.execute(
        "UPDATE message SET parts = ?, metadata = ?, status = ?, folded_through = ?, last_seq = ? WHERE id = ?",
        (dumps(change.parts), dumps(change.metadata), change.status, target.through, target.through, target.fence.message),
    )
    if changed.rowcount != 1:
        raise NotFound(f"No message has the id {target.fence.message!r}.")


_QUESTIONS = "SELECT questions FROM approval WHERE run = ? AND approved IS NULL"


def _park(transaction: Transaction, target: Target, change: Park) -> None:
    asked: list[tuple[bytes | None]] = transaction.execute(_QUESTIONS, (target.fence.run,)).fetchall()
    people = any(questions is None or parse_stored(questions) != BY_CLIENT for (questions,) in asked)
    awaits = "person" if people else "client" if asked else change.awaits
    transaction.execute(
        "UPDATE run SET status = 'waiting', owner = NULL, last_seq = ?, awaits = ?, wake_at = ? WHERE id = ?",
        (target.through, awaits, change.wake_at, target.fence.run),
    )


def _end(transaction: Transaction, target: Target, change: End) -> None:
    run, through = target.fence.run, target.through
    if change.status == "finished" and transaction.row("SELECT 1 FROM inbox WHERE run = ? AND kind = 'steer' AND taken_at IS NULL", (run,)):
        raise Busy(f"The run {run!r} has received another message and must answer it before it ends.")
    initial = transaction.row("SELECT agent, model, agent_type FROM run WHERE id = ?", (run,))
    transaction.execute(
        "UPDATE run SET status = ?, ended_at = ?, owner = NULL, awaits = NULL, wake_at = NULL, error = ?, usage = ?, cost = ?,"
        " model = coalesce(nullif(?, ''), model), result_seq = ?, last_seq = ? WHERE id = ?",
        (
            *(change.status, transaction.now_ms, dumps(change.error.to_json()) if change.error else None),
            *(dumps(change.usage.to_json()), change.cost, change.model, through, through, run),
        ),
    )
    transaction.execute("UPDATE message SET status = ?, last_seq = ? WHERE id = ?", (change.status, through, target.fence.message))
    _keep_unread(transaction, target)
    deny_open(transaction, run, "The run has ended.")
    channels.add_end(transaction, run, change.status)
    _add_sums(transaction, target, change)
    # keep an agent or model that a person selected during the run; a model chosen by an outside agent is not a setting
    transaction.execute(
        "UPDATE conversation SET model = ? WHERE no = ? AND ? <> '' AND agent = ? AND model IN ('', ?) AND ? = 'moot'",
        (change.model, target.conversation, change.model, *initial),
    )


def _keep_unread(transaction: Transaction, target: Target) -> None:
    """Store the messages that the run has not read as user messages at the end of its branch, so that none is lost."""
    run, answer = target.fence.run, target.fence.message
    unread: list[Any] = transaction.execute(
        "SELECT no, body, at FROM inbox WHERE run = ? AND kind = 'steer' AND taken_at IS NULL ORDER BY no", (run,)
    ).fetchall()
    if not unread:
        return
    head: str | None = transaction.row("SELECT head_id FROM conversation WHERE no = ?", (target.conversation,))[0]
    shown = head is not None and messages.is_behind(transaction, head, answer)
    parent = head if shown else answer
    for no, stored, at in unread:
        body = parse_stored_object(stored) if stored is not None else {}
        parts, client_id = body.get("parts"), body.get("client_id")
        transaction.execute("UPDATE inbox SET taken_at = ? WHERE no = ?", (transaction.now_ms, no))
        if not isinstance(parts, list) or not parts:
            continue
        message = Message(
            str(body.get("id", f"steer-{no}")),
            "user",
            tuple(part for part in parts if isinstance(part, dict)),
            parent=parent,
            client_id=client_id if isinstance(client_id, str) else None,
            created_at=at,
        )
        messages.add(transaction, target.conversation, message, move_head=shown)
        parent = message.id


def _add_sums(transaction: Transaction, target: Target, change: End) -> None:
    usage, cost = change.usage, change.cost
    if cost is None:  # some steps may have a known price
        metadata: Any = transaction.row("SELECT metadata FROM message WHERE id = ?", (target.fence.message,))
        _, cost, _ = usage_of_steps(parse_stored_object(metadata[0]))
    transaction.execute(
        "UPDATE conversation SET updated_at = max(updated_at, ?), usage_input = coalesce(usage_input + ?, ?, usage_input),"
        " usage_output = coalesce(usage_output + ?, ?, usage_output),"
        " usage_cache_read = coalesce(usage_cache_read + ?, ?, usage_cache_read),"
        " usage_cache_write = coalesce(usage_cache_write + ?, ?, usage_cache_write),"
        " usage_reasoning = coalesce(usage_reasoning + ?, ?, usage_reasoning), cost = coalesce(cost + ?, ?, cost),"
        " unpriced_runs = unpriced_runs + ?, context_usage = coalesce(?, context_usage),"
        " last_model = coalesce(nullif(?, ''), last_model) WHERE no = ?",
        (
            transaction.now_ms,
            *(
                number
                for count in (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
                for number in (count, count)
            ),
            *(cost, cost),
            int(change.cost is None and (change.model != "" or usage != Usage())),  # a run that called no model has no cost
            change.context_usage,
            change.model,
            target.conversation,
        ),
    )


def deny_open(transaction: Transaction, run: str, reason: str) -> None:
    """Deny all open approvals of the run."""
    transaction.execute(
        "UPDATE approval SET approved = 0, option = 'once', reason = ?, answered_by = 'moot', answered_at = ?"
        " WHERE run = ? AND approved IS NULL",
        (reason, transaction.now_ms, run),
    )


def _ask(transaction: Transaction, target: Target, change: Ask) -> None:
    value = change.approval
    inserted = transaction.execute(
        "INSERT INTO approval (id, run, tool_call, tool, arguments, digest, questions, asked_at, expires_at, parts, outside)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        (
            *(value.id, value.run, value.tool_call, value.tool, value.arguments, value.digest, optional(value.questions)),
            *(value.asked_at or transaction.now_ms, value.expires_at, parts_json(value.parts)),
            optional(value.outside.to_json()) if value.outside is not None else None,
        ),
    )
    if inserted.rowcount == 1:
        channels.add_request(transaction, value)
    if change.hold:
        transaction.execute("UPDATE run SET status = 'waiting', awaits = 'person' WHERE id = ? AND status = 'running'", (target.fence.run,))


def continue_run(transaction: Transaction, run: str) -> None:
    """Set a waiting run's status to running if the run has kept its owner and has no open approvals."""
    transaction.execute(
        "UPDATE run SET status = 'running', awaits = NULL WHERE id = ? AND status = 'waiting' AND owner IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM approval WHERE run = ? AND approved IS NULL)",
        (run, run),
    )


def _use(transaction: Transaction, target: Target, change: Use) -> None:
    row = transaction.row(
        "SELECT coalesce(edited_digest, digest), approved, expires_at, used_at, run FROM approval WHERE id = ?", (change.approval,)
    )
    reason = _unusable(row, target.fence.run, change.digest, transaction.now_ms)
    if reason:
        raise Busy(f"The approval {change.approval!r} can't be used: {reason}.", fix="Request a new approval.")
    transaction.execute("UPDATE approval SET used_at = ? WHERE id = ?", (transaction.now_ms, change.approval))


def _expire(transaction: Transaction, target: Target, change: Expire) -> None:
    changed = transaction.execute(
        "UPDATE approval SET approved = 0, option = 'once', reason = ?, answered_by = 'moot', answered_at = ?"
        " WHERE id = ? AND approved IS NULL AND (? OR expires_at <= ?)",
        (change.reason, transaction.now_ms, change.approval, change.early, transaction.now_ms),
    )
    if changed.rowcount != 1:
        raise Busy(f"The approval {change.approval!r} has already been answered, or has not expired yet.")
    continue_run(transaction, target.fence.run)


def _unusable(row: Any, run: str, digest: bytes, now: int) -> str:
    if row is None:
        return "it does not exist"
    bound, approved, expires_at, used_at, asked_by = row
    if asked_by != run:
        return "it belongs to another run"
    if not approved:
        return "it is not approved"
    if used_at is not None:
        return "it was already used"
    if expires_at is not None and expires_at <= now:
        return "it has expired"
    return "" if bound == digest else "it was given for a different call"


def _hand_over(transaction: Transaction, target: Target, change: HandOver) -> None:
    transaction.execute(
        "UPDATE run SET agent = ?, agent_type = ?, model = '', agent_session_id = NULL WHERE id = ?",
        (change.agent, change.agent_type, target.fence.run),
    )


def _set_session(transaction: Transaction, target: Target, change: SetSession) -> None:
    transaction.execute("UPDATE run SET agent_session_id = ? WHERE id = ?", (change.id, target.fence.run))


def _warn_budget(transaction: Transaction, target: Target, change: WarnBudget) -> None:
    channels.add_budget(transaction, target.fence.run, change.subject or target.fence.run, change.to_json())


def _took(transaction: Transaction, target: Target, change: HandleInbox) -> None:
    transaction.execute(
        # except cancels: the engine handles them, and may not have read one yet
        "UPDATE inbox SET taken_at = ? WHERE run = ? AND no <= ? AND taken_at IS NULL AND kind <> 'cancel'",
        (transaction.now_ms, target.fence.run, change.through),
    )


def _open_exchange(transaction: Transaction, target: Target, change: OpenExchange) -> None:
    if change.pieces is not None and target.has_file is not None:
        row: Any = transaction.row("SELECT owner_id FROM conversation WHERE no = ?", (target.conversation,))
        insert_blobs(transaction, change.pieces, row[0], target.has_file)
    transaction.execute(
        f"{INSERT_EXCHANGE} ON CONFLICT (id) DO UPDATE SET dialect = excluded.dialect, converter = excluded.converter,"
        " provider = excluded.provider, model = excluded.model, options = excluded.options, request = excluded.request,"
        " ended = excluded.ended",
        exchange_row(change.exchange, target.conversation),
    )


def _close_exchange(transaction: Transaction, target: Target, change: CloseExchange) -> None:
    changed = transaction.execute("UPDATE exchange SET ended = ? WHERE id = ?", (change.ended, change.id))
    if changed.rowcount != 1:
        raise StoreError(f"No exchange has the id {change.id!r}.")


def _spent(transaction: Transaction, target: Target, change: RecordUsage) -> None:
    transaction.execute(
        "INSERT INTO aside (exchange, conversation, at, purpose, model, input, output, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(change.exchange, target.conversation, transaction.now_ms, change.purpose, change.model),
            *(change.usage.input or 0, change.usage.output or 0, change.cost),
        ),
    )


_CHANGES: dict[type, Callable[[Transaction, Target, Any], None]] = {
    Fold: _fold,
    Park: _park,
    End: _end,
    Ask: _ask,
    Use: _use,
    Expire: _expire,
    SetSession: _set_session,
    HandOver: _hand_over,
    WarnBudget: _warn_budget,
    HandleInbox: _took,
    OpenExchange: _open_exchange,
    CloseExchange: _close_exchange,
    RecordUsage: _spent,
}
