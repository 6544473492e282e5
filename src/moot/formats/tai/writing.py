"""Conversations as sessions in an `agent.db`. TAI creates its other tables when it opens the file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from moot.formats._source.database import made
from moot.formats._steps import Step, model_calls, output_text
from moot.formats._writing import fidelity_of
from moot.types.canonical import Json, dumps
from moot.types.format import ExportedConversation, Keeping, Written
from moot.types.message import Message

__all__ = ["HOLDS", "database"]

_SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    key TEXT UNIQUE,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content TEXT,
    tool_calls TEXT,
    tool_call_id TEXT,
    created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX idx_messages_session ON messages(session_id, id);
"""
_SESSION = "INSERT INTO sessions (id, key, model, provider, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
_MESSAGE = "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, created_at) VALUES (?, ?, ?, ?, ?, ?)"
_PROVIDERS = ("ollama", "openai", "anthropic")
"""TAI's providers."""

_LATEST = 253_402_300_799_999
"""ms: the end of the year 9999."""

HOLDS: dict[str, Keeping] = {"messages": "kept", "tool calls": "approximated", "times": "approximated"}
"""Tool outputs become text, and times are rounded to seconds."""
_Row = tuple[str, str | None, str | None, str | None, int]
"""role, content, tool_calls, tool_call_id, ms."""


def database(exported: ExportedConversation) -> Written:
    """Return a database with one session. It has no key, so that it replaces no other session."""
    conversation = exported.conversation
    written = [row for message in exported.messages for row in _rows(message)]
    model, _, provider = conversation.model.rpartition("@")
    model, provider = (model, provider) if model else (conversation.model, "")
    session = (conversation.id, None, model or "unknown", provider if provider in _PROVIDERS else "openai")
    times = (_time(conversation.created_at), _time(conversation.updated_at))
    lines = [(conversation.id, role, content, calls, call, _time(at)) for role, content, calls, call, at in written]
    return Written(made(_SCHEMA, [(_SESSION, [(*session, *times)]), (_MESSAGE, lines)]), fidelity_of(exported, HOLDS))


def _rows(message: Message) -> Iterator[_Row]:
    if message.role != "assistant":
        [text] = ["".join(step.text for step in model_calls(message))]
        yield message.role, text, None, None, message.created_at
    else:
        for step in model_calls(message):
            yield from _step(step, message.created_at)


def _step(step: Step, at: int) -> Iterator[_Row]:
    calls: list[Json] = [
        {"id": call.get("toolCallId"), "name": _name(call.get("type"), call.get("toolName")), "arguments": call.get("input")}
        for call in step.calls
    ]
    yield "assistant", step.text or None, dumps(calls).decode() if calls else None, None, at
    for call in step.calls:
        if str(call.get("state", "")).startswith("output"):
            yield "tool", output_text(call), None, str(call.get("toolCallId")), at


def _name(kind: Json, name: Json) -> str:
    return str(name) if kind == "dynamic-tool" else str(kind).removeprefix("tool-")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(min(max(ms, 0), _LATEST) // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
