"""Storing a complete recording in one transaction."""

from __future__ import annotations

from dataclasses import replace

from moot.store import lookup, messages
from moot.store.importing.finding import note
from moot.store.messages import new_conversation
from moot.store.rows import exchange_row, optional
from moot.store.transaction import Transaction
from moot.types.canonical import dumps
from moot.types.conversation import Conversation
from moot.types.exchange import Exchange
from moot.types.recording import Recording
from moot.types.run import Run
from moot.types.usage import Usage

__all__ = ["add"]


def add(recording: Recording, owner: str, transaction: Transaction) -> Conversation:
    """Implement `Imports.add`."""
    wanted = replace(recording.conversation, owner=owner, head=None, message_count=0)
    made = new_conversation(transaction, wanted)
    for run in recording.runs:
        _insert_run(transaction, made.no, run, owner)
    for exchange in recording.exchanges:
        _insert_exchange(transaction, made.no, exchange)
    transaction.add(made.no, recording.events)
    for message in recording.messages:
        messages.insert(transaction, made.no, message)
        if message.id in recording.deleted:
            transaction.execute("UPDATE message SET deleted_at = ? WHERE id = ?", (made.updated_at, message.id))
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


def _insert_exchange(transaction: Transaction, conversation: int, value: Exchange) -> None:
    transaction.execute(
        "INSERT INTO exchange (id, run, conversation, purpose, dialect, converter, provider, model, options, request, chunk_format, ended)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        exchange_row(value, conversation),
    )


def _sum_up(transaction: Transaction, made: Conversation, recording: Recording) -> None:
    """Set the sums as if the runs had ended here."""
    usage = sum((run.usage for run in recording.runs), Usage())
    costs = [run.cost for run in recording.runs if run.cost is not None]
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
