"""The session and tool call that started a sub-agent."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from moot.formats._source.lines import lines_holding
from moot.types.canonical import JsonObject, loads_object

__all__ = ["call_that_began", "parent_of"]

_TRIES = 20


def parent_of(meta: JsonObject) -> str | None:
    """Return the parent session according to the first line."""
    source = meta.get("source")
    spawn = source.get("subagent") if isinstance(source, dict) else None
    spawn_info = spawn.get("thread_spawn") if isinstance(spawn, dict) else None
    parent = spawn_info.get("parent_thread_id") if isinstance(spawn_info, dict) else None
    return parent if isinstance(parent, str) and parent else None


def call_that_began(path: Path, session: str, parent: str) -> str | None:
    """Return the call in the parent's file whose output names the session, or None."""
    if not parent.replace("-", "").isalnum():
        return None
    root = path.parents[3] if len(path.parents) > 3 else path.parent
    candidates = [*path.parent.glob(f"rollout-*-{parent}.jsonl"), *root.glob(f"*/*/*/rollout-*-{parent}.jsonl")]
    return next((call for file in candidates if (call := _call_in(file, session))), None)


def _call_in(file: Path, session: str) -> str | None:
    lines = islice(lines_holding(file, session.encode()), _TRIES)
    return next((call for line in lines if (call := _call_of(line))), None)


def _call_of(line: bytes) -> str | None:
    try:
        payload = loads_object(line).get("payload")
    except ValueError:
        return None
    if not isinstance(payload, dict) or payload.get("type") != "function_call_output":
        return None
    call = payload.get("call_id")
    return call if isinstance(call, str) else None
