"""The format `tai`: sessions and configuration of TAI (tailored-ai), stored in `agent.db` and `config.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from moot.config.document import parse
from moot.config.tree import Place
from moot.errors import ConfigError
from moot.formats.kit.answers import Turns
from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder
from moot.formats.kit.database import (
    Connection,
    create_database,
    is_database,
    open_copy,
    open_own,
    row_bytes,
    row_object,
    row_objects,
    rows,
)
from moot.formats.kit.fidelity import Holds, fidelity_of
from moot.formats.kit.fields import milliseconds, obj, objects, text
from moot.formats.kit.files import read_head, read_inside
from moot.formats.kit.json import parse_json
from moot.formats.kit.records import tool_call as call_part
from moot.formats.kit.steps import model_calls, output_text
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.format import Entry, ExportedConversation, ExportFile, ForeignConfiguration, ImportedConversation, ImportedFacts
from moot.types.message import Message, Part, Role, text_part, tool_name

CONFIGURATION = "config.yaml"
DATABASE = "agent.db"
_TOOLS = {
    "exec": "shell",
    "read": "read_file",
    "write": "write_file",
    "web_fetch": "fetch_url",
    "web_search": "web_search",
    "ask_user": "ask_user",
}
_ACTIONS = {"auto": "allow", "approve": "ask", "conditional": "ask"}
_LATER = ("cron", "webhooks", "taskWatcher", "commands", "custom_tools", "channels", "context")
_TABLES = {
    "projects": "SELECT * FROM projects",
    "project_tasks": "SELECT * FROM project_tasks",
    "task_comments": "SELECT * FROM task_comments",
    "documents": "SELECT * FROM documents",
    "cron_jobs": "SELECT * FROM cron_jobs",
}
_REST = ("hooks", "contextDir", "nudgeOnText", "nudgeMessage", "skipGlobalContext", "summarizeOnTrim")


def configuration(home: Path) -> ForeignConfiguration:
    draft = ConfigurationBuilder("tai")
    settings = settings_of(home, draft)
    if isinstance(profiles := settings.get("profiles"), dict):  # the older name of `agents`
        settings["agents"] = {**profiles, **obj(settings, "agents")}
    _models(draft, settings)
    for name, agent in obj(settings, "agents").items():
        if isinstance(agent, dict):
            _agent(draft, name, agent)
    _permissions(draft, obj(settings, "permissions"))
    for section in _LATER:
        draft.keep(section, settings.get(section))
    draft.keep("tools", settings.get("tools"))
    if (home / DATABASE).is_file():
        with open_copy(home / DATABASE) as connection:
            for name, query in _TABLES.items():
                draft.keep(f"{name} ({DATABASE})", list[Json](row_objects(connection, query)))
    return draft.found()


def settings_of(home: Path, draft: ConfigurationBuilder | None = None) -> JsonObject:
    """Return the settings, or nothing and a note if the file can't be read."""
    data = read_inside(home / CONFIGURATION, inside=home, limit=MAX_SETTINGS)
    if data is None:
        return {}
    try:
        content = data.decode()
        parse(content, Place("user", str(home / CONFIGURATION)))  # rejects YAML bombs, tags and duplicate keys
        value = cast("Any", YAML(typ="safe", pure=True)).load(content)
        found = loads(dumps(value))
    except (ConfigError, YAMLError, ValueError) as error:
        if draft is not None:
            draft.note(f"{CONFIGURATION} can't be read: {error}")
        return {}
    return found if isinstance(found, dict) else {}


def _models(draft: ConfigurationBuilder, settings: JsonObject) -> None:
    agent, providers = obj(settings, "agent"), obj(settings, "providers")
    for name, provider in providers.items():
        if isinstance(provider, dict):
            found: JsonObject = {"base_url": url} if (url := text(provider, "baseUrl")) else {}
            if key := text(provider, "apiKey"):
                found["api_key"] = draft.secret(f"{name}_api_key", key, "key")
            draft.setting("providers", name, found)
    first = text(agent.get("defaultProvider")) or ("ollama" if "ollama" in providers else "")
    model = text(providers, first, "defaultModel")
    if model:
        draft.setting("models", "main", f"{model}@{first}")
    if fallback := _models_of(agent.get("models")):
        draft.setting("models", "fallback", list[Json](fallback))
    facts: JsonObject = {
        "rules": agent.get("extraInstructions"),
        "temperature": agent.get("temperature"),
        "max_steps": agent.get("maxToolRounds"),
    }
    if type(limit := agent.get("maxHistoryTokens")) is int and limit > 0:
        facts["history"] = {"max_tokens": limit}
    if any(value not in (None, "") for value in facts.values()):
        draft.agent("default", facts)


def _models_of(value: Json) -> list[str]:
    return [f"{one['model']}@{one['provider']}" for one in objects(value) if one.get("model") and one.get("provider")]


def _agent(draft: ConfigurationBuilder, name: str, agent: JsonObject) -> None:
    model, provider = text(agent.get("model")), text(agent.get("provider"))
    fallback = _models_of(agent.get("models"))
    facts: JsonObject = {
        "description": agent.get("description"),
        "model": f"{model}@{provider}" if model and provider else model or (fallback[0] if fallback else None),
        "instructions": agent.get("instructions"),
        "temperature": agent.get("temperature"),
        "max_steps": agent.get("maxToolRounds"),
    }
    if fallback[1:]:
        facts["fallback"] = list[Json](fallback[1:])
    draft.agent(name, facts, tools=agent.get("tools"), known=_TOOLS)
    if rest := {key: value for key, value in agent.items() if key in _REST}:
        draft.keep("agents", {name: rest})


def _permissions(draft: ConfigurationBuilder, permissions: JsonObject) -> None:
    if not permissions:
        return
    if permissions.get("defaultMode") == "auto":
        draft.note("everything without a rule was allowed; here calls without a matching rule need approval")
    timeout = permissions.get("timeoutMs")
    if isinstance(timeout, int) and timeout >= 0:
        draft.setting("permissions", "timeout", timeout / 1000)
    for name, tool in obj(permissions, "tools").items():
        rule = obj(tool)
        mode = str(rule.get("mode"))
        if name in _TOOLS and mode in _ACTIONS:
            draft.rule(_TOOLS[name], "allow" if mode == "auto" else "ask")
        if name not in _TOOLS or mode not in ("auto", "approve"):
            draft.keep("permissions", {name: rule})  # TAI's rules are expressions over arguments, moot's are patterns over resources


_SUMMARY = "[Conversation Summary]"
"""Prefix of the row that replaces all others after /compact."""


def conversations(connection: Connection) -> Iterator[ImportedConversation]:
    """Yield sessions, oldest first. Messages of missing sessions become conversations with the session id that they name."""
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
            yield turns.broken(raw, f"message {id} has the role {role!r}", body=row)


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
"""TAI's providers."""

_LATEST = 253_402_300_799_999
"""The end of the year 9999, in ms."""

HOLDS: Holds = {"messages": "kept", "tool calls": "approximated", "times": "approximated"}
"""Approximations: tool outputs become text, and times are rounded to seconds."""
_Row = tuple[str, str | None, str | None, str | None]
"""A row: role, content, tool_calls, tool_call_id."""


def database(exported: ExportedConversation) -> ExportFile:
    """Return a database with one session. The session has no key, so that it can't replace another one."""
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
