"""Which call of a session began a sub-agent whose lines lie in a file of their own."""

from __future__ import annotations

import mmap
from pathlib import Path

from moot.types.canonical import JsonObject, loads

__all__ = ["call_that_began"]

_TRIES = 20


def call_that_began(path: Path, session: str) -> str | None:
    """The id of the call, by the note beside the file or else by the session's own file; None = neither says it."""
    note = _object(_bytes(path.with_suffix(".meta.json")))
    if isinstance(call := note.get("toolUseId"), str) and call:
        return call
    agent = path.stem.removeprefix("agent-")
    folders = [folder for folder in path.parents[:6] if folder.name == session]
    for file in (*(folder.with_suffix(".jsonl") for folder in folders), path.with_name(f"{session}.jsonl")):
        if file.is_file() and not file.is_symlink() and (call := _call_in(file, agent)):
            return call
    return None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 1 << 20 else b""
    except OSError:
        return b""


def _object(data: bytes) -> JsonObject:
    try:
        value = loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _call_in(file: Path, agent: str) -> str | None:
    """The call whose output names the agent."""
    wanted = f'"agentId":"{agent}"'.encode()
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = -1
            for _ in range(_TRIES):
                if (at := data.find(wanted, at + 1)) < 0:
                    return None
                begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
                if call := _call_of(_object(data[begin : end if end >= 0 else len(data)]), agent):
                    return call
    except (OSError, ValueError):
        return None
    return None


def _call_of(line: JsonObject, agent: str) -> str | None:
    told, message = line.get("toolUseResult"), line.get("message")
    if not isinstance(told, dict) or told.get("agentId") != agent or not isinstance(message, dict):
        return None
    content = message.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(call := block.get("tool_use_id"), str):
            return call
    return None
