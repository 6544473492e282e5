"""All tables: which columns may contain user text, and which rows belong to a conversation.

Purges, redactions and blob references all follow from this one list. A test walks the schema and fails for any table, or any text or
bytes column, that is not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, LiteralString, TypeAlias

Form: TypeAlias = Literal["text", "json", "parts", "page", "bytes"]
"""text: a TEXT column · json: canonical JSON · parts: a JSON list of parts or chunks · page: moot's HTML · bytes: anything else."""


@dataclass(frozen=True, slots=True)
class Place:
    """One table."""

    words: Mapping[LiteralString, Form]
    """Columns that may contain user text or the name of a blob."""
    facts: tuple[LiteralString, ...] = ()
    """Columns with ids, states and moot's own terms."""
    of: LiteralString = ""
    """Condition for the rows of the conversation whose `no` is ?1; empty = the table does not belong to conversations."""


_CONVERSATION: LiteralString = "conversation = ?1"
_RUN: LiteralString = "run IN (SELECT id FROM run WHERE conversation = ?1)"

PLACES: Mapping[LiteralString, Place] = {
    # in deletion order: rows that refer to others come first
    "cron_run": Place(
        {"job": "text", "reason": "text"},
        ("owner_id", "status", "run", "conversation"),
        "conversation = (SELECT id FROM conversation WHERE no = ?1)",
    ),
    "task_run": Place(
        {"watcher": "text", "reason": "text"},
        ("run", "conversation"),
        "conversation = (SELECT id FROM conversation WHERE no = ?1)",
    ),
    "webhook_delivery": Place(
        {"webhook": "text", "facts": "json", "reason": "text"},
        ("id", "event", "run", "conversation", "status"),
        "conversation = (SELECT id FROM conversation WHERE no = ?1)",
    ),
    "channel_answer": Place({"shown": "json"}, ("run", "conversation"), "conversation = (SELECT id FROM conversation WHERE no = ?1)"),
    "approval": Place(
        {
            **dict.fromkeys(("tool", "reason"), "text"),
            **dict.fromkeys(("questions", "value", "parts", "patterns", "outside"), "json"),
            **dict.fromkeys(("arguments", "edited"), "bytes"),
        },
        ("id", "run", "tool_call", "digest", "option", "answered_by", "edited_digest"),
        _RUN,
    ),
    "inbox": Place({"body": "json"}, ("run", "kind"), _RUN),
    "search_vector": Place({"vector": "bytes"}, ("model",), "no IN (SELECT no FROM search WHERE conversation = ?1)"),
    "search": Place({}, (), _CONVERSATION),
    "translation": Place({"chunks": "json", "ending": "json"}, ("converter", "exchange"), _CONVERSATION),
    "segment": Place({"data": "bytes"}, ("codec", "dictionary", "frames"), _CONVERSATION),
    "exchange": Place(
        {"options": "json", "request": "json", "provider": "text", "model": "text"},
        ("id", "run", "purpose", "dialect", "converter", "chunk_format", "ended"),
        _CONVERSATION,
    ),
    "event": Place(
        {"chunks": "parts", "raw": "bytes", "body": "json"},
        ("exchange", "kind", "phase", "key", "check"),
        "id > (?1 << 32) AND id < ((?1 + 1) << 32)",
    ),
    "answer_tool": Place({"tool": "text"}, (), "message IN (SELECT no FROM message WHERE conversation = ?1)"),
    "answer_edit": Place({"path": "text", "tool": "text"}, ("owner_id",), "message IN (SELECT no FROM message WHERE conversation = ?1)"),
    "answer": Place(dict.fromkeys(("agent", "lead", "program", "model"), "text"), ("calls", "limits", "status", "error"), _CONVERSATION),
    "aside": Place({"model": "text"}, ("exchange", "purpose"), _CONVERSATION),
    "to_count": Place({}, (), "message IN (SELECT no FROM message WHERE conversation = ?1)"),
    "import_identity": Place({}, ("identity",), "message IN (SELECT no FROM message WHERE conversation = ?1)"),
    "message": Place(
        {"parts": "parts", "metadata": "json", "client_id": "text"}, ("id", "parent_id", "role", "run", "status"), _CONVERSATION
    ),
    "run": Place(
        {"agent": "text", "agent_session_id": "text", "model": "text", "settings": "json", "error": "json"},
        ("id", "message", "owner_id", "agent_type", "trigger", "parent_run", "status", "awaits", "on_crash", "owner", "usage"),
        _CONVERSATION,
    ),
    "compaction": Place(dict.fromkeys(("summary", "plan"), "text"), ("through", "exchange"), _CONVERSATION),
    "share": Place({"title": "text", "page": "page", "left_out": "json"}, ("id", "owner_id", "hash", "policy"), _CONVERSATION),
    "permission_grant": Place(dict.fromkeys(("tool", "match"), "text"), ("granted_by",), _CONVERSATION),
    "conversation_tag": Place({"tag": "text"}, (), _CONVERSATION),
    "log_head": Place({}, (), _CONVERSATION),
    "import_message": Place({}, ("key", "digest", "message"), _CONVERSATION),
    "import_alias": Place({"path": "text"}, ("owner_id", "format", "source_id"), _CONVERSATION),
    "import_conversation": Place({}, ("owner_id", "format", "source_id", "parent", "parent_call", "head", "copied_from"), _CONVERSATION),
    "conversation": Place(
        {
            **dict.fromkeys(("key", "client_id", "title", "agent", "model", "last_model", "parent_tool_call_id"), "text"),
            **dict.fromkeys(("directory", "allowed_uris", "repository"), "bytes"),
            **dict.fromkeys(("settings", "origin"), "json"),
        },
        (
            "id",
            "owner_id",
            "project_id",
            "title_source",
            "agent_type",
            "parent_id",
            "forked_from_id",
            "forked_from_message",
            "head_id",
            "host",
        ),
        "no = ?1",
    ),
    # tables that don't belong to conversations
    "knowledge_vector": Place({"vector": "bytes"}, ("model",)),
    "knowledge_chunk": Place(dict.fromkeys(("place", "heading", "text"), "text")),
    "knowledge_document": Place({"path": "text", "problem": "text"}, ("digest",)),
    "knowledge_source": Place({"path": "text"}, ("id", "owner_id", "project_id", "kind")),
    "answer_day": Place({"agent": "text", "lead": "text", "model": "text"}, ("owner_id", "project_id")),
    "answer_slot": Place({}, ("owner_id",)),
    "tool_day": Place({"tool": "text"}, ("owner_id",)),
    "blob": Place({"data": "bytes"}, ("sha256", "media_type")),
    "blob_owner": Place({}, ("sha256", "owner_id", "media_type")),
    "search_term": Place({"term": "text"}),
    "idempotency": Place({"headers": "bytes", "body": "bytes"}, ("owner_id", "key", "request", "worker")),
    "project": Place({"name": "text", "description": "text", "root_path": "bytes", "context": "text", "rules": "text"}, ("id", "owner_id")),
    "setting": Place({"value": "json"}, ("key",)),
    "user": Place({"name": "text"}, ("id",)),
    "push_device": Place({"name": "text", "error": "text"}, ("id", "owner_id", "token", "endpoint", "p256dh", "auth", "events")),
    "token": Place({"name": "text"}, ("id", "owner_id", "hash", "scopes", "kind")),
    "login_code": Place({}, ("hash", "owner_id")),
    "import_source": Place({}, ("owner_id", "format", "path")),
    "import_purged": Place({}, ("digest",)),
    "tally": Place({}, ("name",)),
    "forgetting": Place({"rest": "json", "receipt": "json"}, ("kind",)),
    "cron_job": Place({"name": "text", "settings": "json"}, ("owner_id", "schedule")),
    "task_cursor": Place({"watcher": "text"}, ("last_run",)),
    "task_watcher": Place({"name": "text"}, ("owner_id",)),
    "task_change": Place({"author": "text", "watcher": "text"}, ("event", "fields", "before", "status", "by_run")),
    "task_comment": Place(dict.fromkeys(("author", "text"), "text"), ("id", "by_run")),
    "task": Place(
        {**dict.fromkeys(("title", "description", "author", "assignee"), "text"), "tags": "json"},
        ("id", "owner_id", "project_id", "status", "due"),
    ),
    "webhook_subscription": Place(dict.fromkeys(("name", "events", "in_project", "of_agent", "in_conversation"), "text")),
    "written_file": Place({"path": "bytes"}, ("kind", "sha256", "conversation")),
}

COUNTS = frozenset({"answer", "answer_edit", "answer_tool", "answer_day", "answer_slot", "tool_day"})
"""Tables with counts of messages, which are rebuilt from messages."""
BY_ITSELF = COUNTS.union(
    ("event", "segment", "exchange", "message", "search_term", "search_vector", "translation", "knowledge_vector"),
    ("blob", "idempotency", "forgetting"),
)
"""Tables that plain replacement can't redact; each has its own code."""

INDEXES: tuple[LiteralString, ...] = ("search_words", "search_infix", "knowledge_words")
"""Full-text indexes, whose internal tables contain every indexed word."""


def select(columns: LiteralString, table: LiteralString, where: LiteralString) -> LiteralString:
    """Return SQL that selects columns of a table."""
    return f"SELECT {columns} FROM {table} WHERE {where}"


def delete(table: LiteralString, where: LiteralString) -> LiteralString:
    """Return SQL that deletes rows."""
    return f"DELETE FROM {table} WHERE {where}"


def update(table: LiteralString, column: LiteralString) -> LiteralString:
    """Return SQL that updates one column of one row."""
    return f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
