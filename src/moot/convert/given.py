"""Conversations, messages and runs as JSON, in the form that all faces return."""

from __future__ import annotations

from collections.abc import Mapping

from moot.types.approval import grants_of
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.run import Run, RunStatus
from moot.types.tree import Node


def conversation_json(conversation: Conversation, live: Mapping[str, RunStatus]) -> JsonObject:
    """Return a conversation as in lists. `live` maps conversations to the status of their live run."""
    return {
        "id": conversation.id,
        "no": conversation.no,
        "client_id": conversation.client_id,
        "title": conversation.title,
        "title_source": conversation.title_source,
        "agent": conversation.agent,
        "model": conversation.model,
        "project": conversation.project,
        "directory": conversation.directory,
        "status": status_of(conversation, live),
        "head": conversation.head,
        "message_count": conversation.message_count,
        "usage": conversation.usage.to_json(),
        "cost": conversation.cost,
        "unpriced_runs": conversation.unpriced_runs,
        "context_usage": conversation.context_usage,
        "settings": {key: value for key, value in conversation.settings.items() if key != "grants"},
        "grants": list[Json]([grant.to_json() for grant in grants_of(conversation.settings)]),
        "parent": conversation.parent,
        "forked_from": conversation.forked_from,
        "origin": conversation.origin,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "archived_at": conversation.archived_at,
        "deleted_at": conversation.deleted_at,
    }


def origin_words(conversation: Conversation) -> str:
    """Return one line about where an imported conversation came from; empty if it started here."""
    path = str((conversation.origin or {}).get("path") or "")
    return ", ".join(filter(None, (f"from {conversation.came_from}", path))) if conversation.came_from else ""


def status_of(conversation: Conversation, live: Mapping[str, RunStatus]) -> str:
    """Return the status of its live run, else finished, pending or standby."""
    if conversation.id in live:
        return live[conversation.id]
    if conversation.is_task_finished:
        return "finished"
    return "pending" if conversation.parent else "standby"


def message_json(message: Message) -> JsonObject:
    """Return a message in the shape of the AI SDK's UIMessage, with moot's own fields added."""
    return {
        "id": message.id,
        "client_id": message.client_id,
        "role": message.role,
        "parts": list[Json](message.parts),
        "metadata": message.metadata,
        "status": message.status,
        "parent": message.parent,
        "run": message.run,
        "created_at": message.created_at,
    }


def node_json(node: Node) -> JsonObject:
    """Return a message with its position in the tree."""
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


def run_json(run: Run) -> JsonObject:
    """Return a run, without what only its owner needs to continue it."""
    return {
        "id": run.id,
        "no": run.no,
        "conversation": run.conversation,
        "message": run.message,
        "agent": run.agent,
        "model": run.model,
        "trigger": run.trigger,
        "parent_run": run.parent_run,
        "status": run.status,
        "error": run.error.to_json() if run.error is not None else None,
        "usage": run.usage.to_json(),
        "cost": run.cost,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "first_seq": run.first_seq,
        "last_seq": run.last_seq,
        "result_seq": run.result_seq,
    }
