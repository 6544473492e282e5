"""A small database in TalkCody's format."""

from __future__ import annotations

from functools import lru_cache

from moot.formats.kit.database import create_database
from moot.types.canonical import JsonObject, dumps

__all__ = ["SCHEMA", "sample"]

SCHEMA = """
CREATE TABLE projects (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT DEFAULT '', created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    context TEXT DEFAULT '', rules TEXT DEFAULT '', root_path TEXT DEFAULT NULL
);
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, project_id TEXT NOT NULL DEFAULT 'default', created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, message_count INTEGER DEFAULT 0, request_count INTEGER DEFAULT 0, cost REAL DEFAULT 0,
    input_token INTEGER DEFAULT 0, output_token INTEGER DEFAULT 0, context_usage REAL DEFAULT NULL, settings TEXT DEFAULT NULL
);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, reasoning_content TEXT DEFAULT NULL,
    timestamp INTEGER NOT NULL, assistant_id TEXT, position_index INTEGER DEFAULT 0
);
CREATE TABLE message_attachments (
    id TEXT PRIMARY KEY, message_id TEXT NOT NULL, type TEXT NOT NULL, filename TEXT NOT NULL, file_path TEXT NOT NULL,
    mime_type TEXT NOT NULL, size INTEGER NOT NULL, created_at INTEGER NOT NULL
);
CREATE TABLE api_usage_events (
    id TEXT PRIMARY KEY, conversation_id TEXT DEFAULT NULL, model TEXT NOT NULL, provider_id TEXT DEFAULT NULL,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0, created_at INTEGER NOT NULL
);
CREATE TABLE todos (
    id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, content TEXT NOT NULL, status TEXT NOT NULL, priority TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
"""
_AT = 1_779_726_691_000


@lru_cache
def sample() -> bytes:
    """A task with a tool call, usage, an attachment whose file is missing, and an answer interrupted by a crash."""
    call: JsonObject = {"type": "tool-call", "toolCallId": "call_1", "toolName": "readFile", "input": {"file_path": "notes.md"}}
    result: JsonObject = {**call, "type": "tool-result", "output": {"success": True, "content": "milk"}, "status": "success"}
    messages = [
        ("m1", "t1", "user", "What is in the notes?", None, _AT, "planner"),
        ("m2", "t1", "assistant", "", None, _AT + 1, "planner"),
        ("m3", "t1", "tool", dumps(call).decode(), "I should look.", _AT + 2, None),
        ("m4", "t1", "tool", dumps(result).decode(), None, _AT + 2, None),
        ("m5", "t1", "assistant", "Milk.", "That is all.", _AT + 3, "planner"),
        ("m6", "t1", "user", "And now?", None, _AT + 9, "planner"),
        ("m7", "t1", "assistant", "", None, _AT + 10, "planner"),
    ]
    task = ("t1", "The notes", "p", _AT, _AT + 10, 7, 7, 0.002, 100, 20, 0.1, '{"autoApproveEdits":true}')
    return create_database(
        SCHEMA,
        [
            ("INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [("p", "Notes", "", _AT, _AT, "", "", "/nowhere/notes")]),
            ("INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [task]),
            ("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, 0)", messages),
            (
                "INSERT INTO message_attachments VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [("a1", "m1", "image", "dot.png", "/nowhere/attachments/dot.png", "image/png", 70, _AT)],
            ),
            ("INSERT INTO api_usage_events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [("u1", "t1", "big", "mine", 100, 20, 0.002, _AT + 4)]),
            ("INSERT INTO todos VALUES (?, ?, ?, ?, ?, ?, ?)", [("d1", "t1", "Buy milk", "pending", "high", _AT, _AT)]),
        ],
    )
