"""What is given out of a conversation and of a place in its tree."""

from __future__ import annotations

from collections.abc import Mapping

from moot.types.approval import grants_of
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.run import STARTED, RunStatus
from moot.types.store import Store
from moot.types.tree import Node

QUEUED: frozenset[RunStatus] = frozenset({"queued"})


async def live_statuses(store: Store) -> dict[str, RunStatus]:
    """Conversation id → state of its live run, for all that have one."""
    runs = await store.records.runs(statuses=STARTED | QUEUED)
    started = [run for run in runs if run.status in STARTED]
    return {run.conversation: run.status for run in [*runs, *started]}


def conversation_json(conversation: Conversation, live: Mapping[str, RunStatus]) -> JsonObject:
    """A conversation as lists give it out."""
    return {
        "id": conversation.id,
        "no": conversation.no,
        "title": conversation.title,
        "title_source": conversation.title_source,
        "agent": conversation.agent,
        "model": conversation.model,
        "directory": conversation.directory,
        "status": status_of(conversation, live),
        "message_count": conversation.message_count,
        "usage": conversation.usage.to_json(),
        "cost": conversation.cost,
        "unpriced_runs": conversation.unpriced_runs,
        "grants": list[Json]([grant.to_json() for grant in grants_of(conversation.settings)]),
        "forked_from": conversation.forked_from,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "archived_at": conversation.archived_at,
        "deleted_at": conversation.deleted_at,
    }


def status_of(conversation: Conversation, live: Mapping[str, RunStatus]) -> str:
    """The state of its live run, else finished, pending or standby."""
    if conversation.id in live:
        return live[conversation.id]
    if conversation.is_task_finished:
        return "finished"
    return "pending" if conversation.parent else "standby"


def node_json(node: Node) -> JsonObject:
    """A message in its place."""
    return {
        "no": node.no,
        "id": node.id,
        "parent": node.parent,
        "role": node.role,
        "status": node.status,
        "line": node.line,
        "created_at": node.at,
        "run": node.run,
        "shown": node.shown,
        "deleted": node.deleted,
    }
