"""Small databases in Cherry Studio's format."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from moot.formats.kit.database import create_database
from moot.types.canonical import JsonObject, dumps

__all__ = ["samples"]

_FIRST = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, agent_type TEXT NOT NULL, agent_id TEXT NOT NULL, name TEXT NOT NULL, description TEXT, accessible_paths TEXT,
    instructions TEXT, model TEXT NOT NULL, plan_model TEXT, small_model TEXT, mcps TEXT, allowed_tools TEXT, slash_commands TEXT,
    configuration TEXT, sort_order INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
);
CREATE TABLE session_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
    agent_session_id TEXT DEFAULT '', metadata TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
);
"""
_SECOND = """
CREATE TABLE agent_session (
    id TEXT PRIMARY KEY, agent_id TEXT, name TEXT NOT NULL, is_name_manually_edited INTEGER, description TEXT,
    order_key TEXT, last_activity_at INTEGER, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, deleted_at INTEGER
);
CREATE TABLE agent_session_message (
    id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, role TEXT NOT NULL, data TEXT NOT NULL,
    searchable_text TEXT DEFAULT '' NOT NULL,
    status TEXT NOT NULL, model_id TEXT, message_snapshot TEXT, stats TEXT, runtime_resume_token TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE TABLE topic (
    id TEXT PRIMARY KEY, name TEXT, assistant_id TEXT, prompt TEXT, active_node_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, deleted_at INTEGER
);
CREATE TABLE message (
    id TEXT PRIMARY KEY, parent_id TEXT, topic_id TEXT NOT NULL, role TEXT NOT NULL, data TEXT NOT NULL, status TEXT NOT NULL,
    siblings_group_id INTEGER DEFAULT 0, model_id TEXT, stats TEXT, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, deleted_at INTEGER
);
"""
_AT = 1_781_000_000_000
_TIME = "2026-01-02T03:04:05.678Z"


@lru_cache
def samples() -> Mapping[str, bytes]:
    return {"first": _first(), "second": _second()}


def _first() -> bytes:
    tool: JsonObject = {"id": "b3", "type": "tool", "toolId": "call_1", "toolName": "Read", "arguments": {"file_path": "notes.md"}}
    tool["content"] = {"content": [{"type": "text", "text": "milk"}], "isError": False}
    blocks: list[JsonObject] = [
        {"id": "b2", "type": "thinking", "content": "I should look.", "thinking_millsec": 12},
        tool,
        {"id": "b4", "type": "main_text", "content": "Milk."},
    ]
    asked = {
        "message": {"id": "m1", "role": "user", "createdAt": _TIME},
        "blocks": [{"id": "b1", "type": "main_text", "content": "The notes?"}],
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    told = {"message": {"id": "m2", "role": "assistant", "createdAt": _TIME, "modelId": "some-model", "usage": usage}, "blocks": blocks}
    folders = '["/home/ada/notes"]'
    session = ("session_1_a", "claude-code", "agent_1_b", "The notes", None, folders, None, "mine:some-model", *[None] * 6, 0, _TIME, _TIME)
    lines = [
        ("session_1_a", role, dumps(content).decode(), "2c5e7a70-0000-4000-8000-000000000001", _TIME, _TIME)
        for role, content in [("user", asked), ("assistant", told)]
    ]
    return create_database(
        _FIRST,
        [
            ("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [session]),
            ("INSERT INTO session_messages VALUES (NULL, ?, ?, ?, ?, NULL, ?, ?)", lines),
        ],
    )


def _second() -> bytes:
    def said(text: str) -> str:
        return dumps({"parts": [{"type": "text", "text": text, "state": "done"}]}).decode()

    details: JsonObject = {"cacheReadTokens": 3}
    stats = dumps(
        {"inputTokens": 10, "outputTokens": 5, "inputTokenDetails": details, "costs": [{"amount": 0.001, "currency": "USD"}]}
    ).decode()
    answers = [
        ("s1m1", "s1", "user", said("The notes?"), "", "success", None, None, None, None, _AT, _AT),
        ("s1m2", "s1", "assistant", said("Milk."), "", "success", "mine::some-model", None, stats, "resume-me", _AT + 1, _AT + 1),
    ]
    tree = [
        ("c1", None, "t1", "user", said("Name a fruit"), "success", None, _AT, _AT, None),
        ("c2", "c1", "t1", "assistant", said("Apple"), "success", "mine::small", _AT + 1, _AT + 1, None),
        ("c3", "c1", "t1", "assistant", said("Pear"), "success", "mine::big", _AT + 2, _AT + 2, None),
        ("c4", "c3", "t1", "user", said("Gone"), "success", None, _AT + 3, _AT + 3, _AT + 9),
    ]
    return create_database(
        _SECOND,
        [
            (
                "INSERT INTO agent_session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    ("s1", "a1", "The notes", 0, None, "a0", _AT + 1, _AT, _AT, None),
                    ("s2", "a1", "Thrown away", 0, None, "a1", _AT, _AT, _AT, _AT + 5),
                ],
            ),
            ("INSERT INTO agent_session_message VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", answers),
            ("INSERT INTO topic VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [("t1", "Fruit", "as1", None, "c3", _AT, _AT + 3, None)]),
            ("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, 0, ?, NULL, ?, ?, ?)", tree),
        ],
    )
