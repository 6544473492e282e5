"""The format `tai`: sessions and configuration of TAI (tailored-ai), stored in `agent.db` and `config.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from moot.formats.apps.tai.configuration import DATABASE, configuration
from moot.formats.kit.answers import Turns
from moot.formats.kit.database import (
    Connection,
    create_database,
    is_database,
    open_own,
    row_bytes,
    row_object,
    rows,
)
from moot.formats.kit.fidelity import Holds, fidelity_of
from moot.formats.kit.fields import milliseconds, objects, text
from moot.formats.kit.files import read_head
from moot.formats.kit.json import parse_json
from moot.formats.kit.records import tool_call as call_part
from moot.formats.kit.steps import model_calls, output_text
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Entry, ExportedConversation, ExportFile, ForeignConfiguration, ImportedConversation, ImportedFacts
from moot.types.message import Message, Part, Role, text_part, tool_name

_SUMMARY = "[Conversation Summary]"
"""Prefix of the row with the summary, which replaces all earlier rows after /compact."""


def conversations(connection: Connection) -> Iterator[ImportedConversation]:
    """Yield sessions, oldest first. Messages of a missing session become a conversation with the id of that session."""
    known: set[str] = set()
    for row in rows(connection, "SELECT * FROM sessions ORDER BY created_at, id"):
        if isinstance(row, str):
            break
        session = row_object(row)
        known.add(str(session["id"]))
        yield _conversation(connection, session)
    orphans = "SELECT DISTINCT session_id FROM messages WHERE session_id NOT IN (SELECT id FROM sessions) ORDER BY session_id"
    for row in rows(connection, orphans):
        if not isinstance(row, str) and str(row[0]) not in known:
            yield _conversation(connection, {"id": str(row[0])})


def _conversation(connection: Connection, session: JsonObject) -> ImportedConversation:
    key = text(session.get("key"))
    parent = key.split(":")[1] if key.startswith("delegate:") and key.count(":") >= 2 else None
    return ImportedConversation(str(session["id"]), _entries(connection, session), parent or None)


def _entries(connection: Connection, session: JsonObject) -> Iterator[Entry]:
    turns = Turns()
    for row in rows(connection, "SELECT * FROM messages WHERE session_id = ? ORDER BY id", session["id"]):
        if isinstance(row, str):
            yield from turns.end()
            yield turns.broken(b"", row)
            break
        yield from _message(turns, row_object(row), row_bytes(row))
    yield from turns.end()
    model, provider = text(session.get("model")), text(session.get("provider"))
    turns.tally.weaken("times")  # TAI stores whole seconds
    yield ImportedFacts(
        turns.tally.fidelity(),
        key=text(session.get("key")),
        model=f"{model}@{provider}" if model and provider else model,
        created_at=milliseconds(session.get("created_at")),
        updated_at=milliseconds(session.get("updated_at")),
    )


def _message(turns: Turns, row: JsonObject, raw: bytes) -> Iterator[Entry]:
    id, role, content = str(row.get("id")), row.get("role"), row.get("content")
    at = milliseconds(row.get("created_at"))
    match role:
        case "user" | "system":
            parts = _texts(content)
            summary = isinstance(content, str) and content.startswith(_SUMMARY)
            yield from turns.say(cast("Role", role), id, raw, parts, at=at, metadata={"compacted": True} if summary else None)
            if summary:
                turns.tally.lose("records")  # the number of replaced messages is unknown
        case "assistant":
            calls, problem = _calls(row.get("tool_calls"))
            turns.step(id, raw, [*_texts(content), *calls], at=at)
            if problem:
                yield turns.broken(b"", f"message {id}: {problem}")
        case "tool":
            turns.output(text(row.get("tool_call_id")), id, raw, at=at, output=content if content is not None else "", failed=False)
        case _:
            yield from turns.end()
            yield turns.broken(raw, f"message {id} has the unknown role {role!r}", body=row)


def _texts(content: Json) -> list[Part]:
    return [text_part(content)] if isinstance(content, str) and content else []


def _calls(column: Json) -> tuple[list[Part], str]:
    """Return the tool calls of a row and a description of their problem, if any."""
    if column is None or column == "":
        return [], ""
    try:
        calls = parse_json(column) if isinstance(column, str) else column
    except ValueError:
        return [], "tool_calls is not valid JSON"
    if not isinstance(calls, list):
        return [], "tool_calls is not a list"
    parts = [call_part(text(call, "id"), text(call, "name"), call.get("arguments")) for call in objects(calls)]
    return parts, "" if len(parts) == len(calls) else "some tool_calls are not objects"


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
"""Names of TAI's providers."""

_LATEST = 253_402_300_799_999
"""The end of the year 9999, in ms."""

HOLDS: Holds = {"messages": "kept", "tool calls": "approximated", "times": "approximated"}
"""Fidelity of the items that the format can hold. Tool outputs become text, and times are rounded to seconds."""
_Row = tuple[str, str | None, str | None, str | None]
"""A row: role, content, tool_calls, tool_call_id."""


def database(exported: ExportedConversation) -> ExportFile:
    """Return a database with one session. The session has no key, so that it can't replace another session."""
    conversation = exported.conversation
    model, _, provider = conversation.model.rpartition("@")
    model, provider = (model, provider) if model else (conversation.model, "")
    session = (conversation.id, None, model or "unknown", provider if provider in _PROVIDERS else "openai")
    times = (_time(conversation.created_at), _time(conversation.updated_at))
    lines = [(conversation.id, *row, _time(message.created_at)) for message in exported.messages for row in _rows(message)]
    return ExportFile(create_database(_SCHEMA, [(_SESSION, [(*session, *times)]), (_MESSAGE, lines)]), fidelity_of(exported, HOLDS))


def _rows(message: Message) -> Iterator[_Row]:
    steps = model_calls(message)
    if message.role != "assistant":
        yield message.role, "".join(step.text for step in steps), None, None
        return
    for step in steps:
        calls: list[Json] = [{"id": call.get("toolCallId"), "name": tool_name(call), "arguments": call.get("input")} for call in step.calls]
        yield "assistant", step.text or None, dumps(calls).decode() if calls else None, None
        for call in step.calls:
            if str(call.get("state", "")).startswith("output"):
                yield "tool", output_text(call), None, str(call.get("toolCallId"))


def _time(ms: int) -> str:
    return datetime.fromtimestamp(min(max(ms, 0), _LATEST) // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


_OWN = {
    "sessions": {"id", "key", "model", "provider"},
    "messages": {"session_id", "role", "content", "tool_calls", "tool_call_id"},
}


class Tai:
    name = "tai"
    version = 1
    stored_files: tuple[str, ...] = (DATABASE,)
    suffix = ".db"
    words = "a database for TAI with the conversation as a session"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return bool(inner := read_head(path / DATABASE)) and self.sniff(path / DATABASE, inner)
        return is_database(path, head, _OWN)

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        return [Path(environ["TAI_HOME"]) if environ.get("TAI_HOME") else home / ".tailored-ai"]

    def sources(self, folder: Path) -> Iterator[Path]:
        yield folder / DATABASE

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        path = path / DATABASE if path.is_dir() else path
        with open_own(path, "TAI", _OWN) as connection:
            yield from conversations(connection)

    def configuration(self, path: Path) -> ForeignConfiguration:
        return configuration(path if path.is_dir() else path.parent)

    def write(self, exported: ExportedConversation) -> ExportFile:
        return database(exported)
