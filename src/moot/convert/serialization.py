"""Conversations, messages, runs, events, agents and models as JSON, in the form that all interfaces return."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal

from moot.types.agent import Agent
from moot.types.approval import grants_of
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event, Raw, as_tombstone
from moot.types.message import Message
from moot.types.model import Model
from moot.types.run import Run, RunStatus
from moot.types.tree import Node


def event_json(event: Event, *, raw: bool = False) -> JsonObject:
    """Return `{seq, at, run, kind, exchange, chunks, phase?, key?}`, and with `raw` also `dir` and the bytes (`raw_base64` if not UTF-8).

    A tombstone has the event's former kind in `was`, the `reason` and `redacted_at` (ms).
    """
    event = as_tombstone(event)
    value: JsonObject = {
        "seq": event.seq,
        "at": event.at,
        "run": event.run,
        "kind": event.kind,
        "exchange": event.exchange,
        "chunks": list(event.chunks),
    }
    if event.phase is not None:
        value["phase"] = event.phase
    if event.key is not None:
        value["key"] = event.key
    if event.kind == "tombstone" and isinstance(event.body, dict):
        value |= {name: event.body.get(name) for name in ("was", "reason")} | {"redacted_at": event.body.get("at")}
    if raw and event.raw is not None:
        value |= {"dir": direction(event), **raw_json(event.raw)}
    return value


def raw_json(raw: Raw) -> JsonObject:
    """Return the bytes in JSON form: `raw`, or `raw_base64` if they are not UTF-8."""
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(raw).decode()}


def direction(event: Event) -> Literal["in", "out"]:
    """Return the direction of an event's raw: `out` if moot sent it to a vendor's program, else `in`."""
    return "out" if event.kind == "raw" and isinstance(event.body, dict) and event.body.get("dir") == "out" else "in"


def agent_json(agent: Agent) -> JsonObject:
    """Return an agent as a JSON object."""
    return {
        "id": agent.name,
        "name": agent.name,
        "description": agent.description,
        "agent_type": agent.agent_type,
        "model": agent.model,
        "instructions": agent.instructions,
        "rules": agent.rules,
        "tools": None if agent.tools is None else list[Json](agent.tools),
        "role": agent.role,
        "temperature": agent.temperature,
        "max_steps": agent.max_steps,
        "effort": agent.effort,
        "fallback": list[Json](agent.fallback),
    }


def model_json(model: Model) -> JsonObject:
    """Return a model as a JSON object."""
    price = model.price
    return {
        "id": str(model.id),
        "model": model.id.model,
        "provider": model.id.provider,
        "wire_name": model.wire_name,
        "context": model.context,
        "max_output": model.max_output,
        "modalities": list[Json](model.modalities),
        "tools": model.tools,
        "reasoning": model.reasoning,
        "price": {"input": price.input, "output": price.output} if price else None,
        "note": model.note,
    }


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


def describe_origin(conversation: Conversation) -> str:
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
