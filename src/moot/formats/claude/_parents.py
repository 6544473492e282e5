"""The tool call that started a sub-agent with a file of its own."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from moot.formats._source.lines import lines_holding
from moot.formats._source.plain import head_of
from moot.types.canonical import JsonObject, loads

__all__ = ["call_that_began"]

_TRIES = 20
_NOTE = 1 << 20


def call_that_began(path: Path, session: str) -> str | None:
    """Return the call id from the metadata file or the session's own file, or None if neither contains it."""
    note = _object(head_of(path.with_suffix(".meta.json"), _NOTE, links=False))
    if isinstance(call := note.get("toolUseId"), str) and call:
        return call
    agent = path.stem.removeprefix("agent-")
    folders = [folder for folder in path.parents[:6] if folder.name == session]
    for file in (*(folder.with_suffix(".jsonl") for folder in folders), path.with_name(f"{session}.jsonl")):
        if call := _call_in(file, agent):
            return call
    return None


def _object(data: bytes) -> JsonObject:
    try:
        value = loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _call_in(file: Path, agent: str) -> str | None:
    """Return the call whose output names the agent."""
    wanted = f'"agentId":"{agent}"'.encode()
    lines = islice(lines_holding(file, wanted), _TRIES)
    return next((call for line in lines if (call := _call_of(_object(line), agent))), None)


def _call_of(line: JsonObject, agent: str) -> str | None:
    result, message = line.get("toolUseResult"), line.get("message")
    if not isinstance(result, dict) or result.get("agentId") != agent or not isinstance(message, dict):
        return None
    content = message.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(call := block.get("tool_use_id"), str):
            return call
    return None
