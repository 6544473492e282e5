"""Conversations, messages, runs, events, agents and models as JSON, in the form that all interfaces return."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal

from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event, Raw, as_tombstone
from moot.types.message import Message
from moot.types.model import Model
from moot.types.run import Run, RunStatus
from moot.types.tree import Node


def event_json(event: Event, *, raw: bool = False) -> JsonObject:
    """Return `{seq, at, run, kind, exchange, chunks, phase?, key?}` and, if `raw` is True,
    also `dir` and the bytes (`raw_base64` if not UTF-8).

    The tombstone of a redacted event also contains the event's former kind in `was`,
    the `reason`, and `redacted_at` in ms since the epoch.
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
    """Return the bytes as a JSON field: `raw`, or `raw_base64` if they are not UTF-8."""
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(raw).decode()}


def direction(event: Event) -> Literal["in", "out"]:
    """Return the direction of an event's raw bytes: `out` if moot sent them to a vendor's program, otherwise `in`."""
    return "out" if event.kind == "raw" and isinstance(event.body, dict) and event.body.get("dir") == "out" else "in"


def _pick(value: object, names: str) -> JsonObject:
    """Return these attributes of a value, in this order."""
    return {name: getattr(value, name) for name in names.split()}


def agent_json(agent: Agent) -> JsonObject:
    """Return an agent as a JSON object."""
    names = "name description agent_type model instructions rules tools role temperature max_steps effort fallback"
    names += " output_format hidden beta default version origin forked_from"
    tools = None if agent.tools is None else list[Json](agent.tools)
    own, parts = agent.prompt, agent.prompt.parts
    prompt: JsonObject = {"parts": None if parts is None else [*parts], "variables": {**own.variables}, "max_tokens": own.max_tokens}
    lists: JsonObject = {"tools": tools, "fallback": [*agent.fallback], "agents": [*agent.agents]}
    return {"id": agent.name, **_pick(agent, names), **lists, "prompt": prompt}


def model_json(model: Model) -> JsonObject:
    """Return a model as a JSON object."""
    price = model.price
    return {
        "id": str(model.id),
        "model": model.id.model,
        "provider": model.id.provider,
        **_pick(model, "wire_name context max_output modalities tools reasoning price note"),
        "modalities": list[Json](model.modalities),
        "price": {"input": price.input, "output": price.output} if price else None,
    }


def conversation_json(conversation: Conversation, live: Mapping[str, RunStatus]) -> JsonObject:
    """Return a conversation as a JSON object. `live` maps conversation ids to the status of their live run."""
    grants = list[Json]([grant.to_json() for grant in conversation.grants])
    return {
        **_pick(conversation, "id no client_id title title_source agent model last_model project directory host"),
        "status": status_of(conversation, live),
        **_pick(conversation, "head message_count usage cost unpriced_runs context_usage"),
        "usage": conversation.usage.to_json(),
        "settings": conversation.own_settings.to_json(),
        "grants": grants,
        "tags": list[Json](conversation.tags),
        **_pick(conversation, "parent forked_from origin created_at updated_at pinned_at archived_at deleted_at expires_at"),
    }


def describe_origin(conversation: Conversation) -> str:
    """Return one line that says where a conversation was imported from, or an empty string if it was not imported."""
    path = str((conversation.origin or {}).get("path") or "")
    place = f"from {conversation.came_from}{f' on {conversation.host}' if conversation.host else ''}"
    return ", ".join(filter(None, (place, path))) if conversation.came_from else ""


def status_of(conversation: Conversation, live: Mapping[str, RunStatus]) -> str:
    """Return the status of the conversation's live run. If there is none, return `finished`, `pending` or `standby`."""
    if conversation.id in live:
        return live[conversation.id]
    if conversation.is_task_finished:
        return "finished"
    return "pending" if conversation.parent else "standby"


def message_json(message: Message) -> JsonObject:
    """Return a message in the shape of the AI SDK's UIMessage, with moot's own fields added."""
    names = "id client_id role parts metadata status parent run created_at"
    return {**_pick(message, names), "parts": list[Json](message.parts)}


def node_json(node: Node) -> JsonObject:
    """Return a message with its position in the tree."""
    return {**_pick(node, "no id parent role status line"), "created_at": node.at, **_pick(node, "run shown deleted")}


def run_json(run: Run) -> JsonObject:
    """Return a run as a JSON object, without the fields that are needed only to continue the run."""
    names = (
        "id no conversation message agent model trigger parent_run status error usage cost"
        " created_at started_at ended_at first_seq last_seq result_seq"
    )
    return {**_pick(run, names), "error": run.error.to_json() if run.error is not None else None, "usage": run.usage.to_json()}


def describe_cost(cost: int | None, unpriced: int, *, digits: int = 4) -> str:
    """Format a cost in nano-dollars with the number of answers that it doesn't include, such as `$4.10 + 3 unpriced`.

    Return an empty string if the cost is unknown.
    """
    known = "" if cost is None or (not cost and unpriced) else f"${cost / 1e9:,.{digits}f}"
    return " + ".join(filter(None, (known, f"{unpriced:,} unpriced" if unpriced else "")))
