"""Agent sessions, with the table names of all versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from moot.formats._source.database import Connection, object_of, raw_of, rows
from moot.formats._source.fields import milliseconds
from moot.formats._source.folders import files_below
from moot.formats._source.lines import json_lines
from moot.formats._source.pieces import value_in
from moot.formats._source.tally import Tally
from moot.formats.cherry.messages import message_of, model_of
from moot.types.canonical import JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedRecord

__all__ = ["SESSIONS", "sessions"]


class Names(NamedTuple):
    """Table names and queries of one version of the schema."""

    sessions: str
    messages: str
    all_sessions: str
    all_messages: str
    orphans: str


SESSIONS = (
    Names(
        "agent_session",
        "agent_session_message",
        "SELECT * FROM agent_session ORDER BY created_at, id",
        "SELECT * FROM agent_session_message WHERE session_id = ? ORDER BY created_at, id",
        "SELECT DISTINCT session_id FROM agent_session_message WHERE session_id NOT IN (SELECT id FROM agent_session) ORDER BY 1",
    ),
    Names(
        "agents_sessions",
        "agents_session_messages",
        "SELECT * FROM agents_sessions ORDER BY created_at, id",
        "SELECT * FROM agents_session_messages WHERE session_id = ? ORDER BY created_at, id",
        "SELECT DISTINCT session_id FROM agents_session_messages WHERE session_id NOT IN (SELECT id FROM agents_sessions) ORDER BY 1",
    ),
    Names(
        "sessions",
        "session_messages",
        "SELECT * FROM sessions ORDER BY created_at, id",
        "SELECT * FROM session_messages WHERE session_id = ? ORDER BY created_at, id",
        "SELECT DISTINCT session_id FROM session_messages WHERE session_id NOT IN (SELECT id FROM sessions) ORDER BY 1",
    ),
)
_RESUME = ("runtime_resume_token", "agent_session_id")
"""Columns with the outside agent's own session id. The last value is used."""
_KEPT = ("agent_type", "agent_id", "instructions", "description", "permission_mode")


def sessions(connection: Connection, there: Mapping[str, frozenset[str]], home: Path) -> Iterator[ImportedConversation]:
    """Yield sessions, oldest first. Messages of deleted sessions, which older versions left behind, come last."""
    for names in SESSIONS:
        if names.sessions not in there or names.messages not in there:
            continue
        workspaces = _paths(connection) if "agent_workspace" in there else {}
        for row in rows(connection, names.all_sessions):
            if isinstance(row, str):
                break
            session = object_of(row)
            if session.get("deleted_at") is None:
                yield ImportedConversation(str(session["id"]), _entries(connection, names, session, workspaces, home))
        for row in rows(connection, names.orphans):
            if not isinstance(row, str):
                yield ImportedConversation(str(row[0]), _entries(connection, names, {"id": str(row[0])}, workspaces, home))


def _paths(connection: Connection) -> dict[str, str]:
    found = [object_of(row) for row in rows(connection, "SELECT * FROM agent_workspace") if not isinstance(row, str)]
    return {str(one.get("id")): str(one.get("path") or "") for one in found}


def _entries(connection: Connection, names: Names, session: JsonObject, workspaces: dict[str, str], home: Path) -> Iterator[Entry]:
    tally, seen, last, resumed = Tally(), set[str](), None, ""
    for row in rows(connection, names.all_messages, session["id"]):
        if isinstance(row, str):
            tally.lose("records")
            yield ImportedRecord(b"", problem=row)
            break
        value = object_of(row)
        resumed = next((str(value[name]) for name in _RESUME if value.get(name)), resumed)
        if value.get("deleted_at") is not None:
            continue
        message = message_of(value, raw_of(row), last)
        if isinstance(message, ImportedRecord) or message.source_id in seen:
            problem = message.problem if isinstance(message, ImportedRecord) else f"message {message.source_id!r} exists twice"
            tally.lose("records")
            yield ImportedRecord(raw_of(row), value, problem)
            continue
        seen.add(message.source_id)
        last = message.source_id
        tally.keep(message)
        yield message
    yield from _transcript(home, resumed, tally)
    yield _facts(session, workspaces, resumed, tally)


def _transcript(home: Path, session: str, tally: Tally) -> Iterator[Entry]:
    """Yield the lines of the outside agent's own file. They contain data that the database no longer has."""
    if not session or "/" in session or session.startswith("."):
        return
    for folder in (home / ".claude", home / "Agents" / ".claude", home.parent / ".claude"):
        file = next(files_below(folder / "projects", f"{session}.jsonl", depth=2), None)
        if file is None or file.name != f"{session}.jsonl":
            continue
        for line in json_lines(file):
            (tally.lost if line.problem else tally.kept)["records"] += 1
            yield ImportedRecord(line.raw, None, line.problem)
        return


def _facts(session: JsonObject, workspaces: dict[str, str], resumed: str, tally: Tally) -> ImportedFacts:
    title = str(session.get("name") or "")
    tally.kept["titles"] += bool(title)
    tally.kept = +tally.kept
    paths = value_in(session.get("accessible_paths"))
    first = str(paths[0]) if isinstance(paths, list) and paths else ""
    model, provider = model_of(session.get("model"))
    more: JsonObject = {name: session[name] for name in _KEPT if session.get(name)}
    if configuration := value_in(session.get("configuration")):
        more["configuration"] = configuration
    if resumed:
        more["agent_session_id"] = resumed
    return ImportedFacts(
        tally.fidelity(),
        title=title,
        directory=workspaces.get(str(session.get("workspace_id")), "") or first,
        model=f"{model}@{provider}" if provider else model,
        created_at=milliseconds(session.get("created_at")),
        updated_at=milliseconds(session.get("last_activity_at")) or milliseconds(session.get("updated_at")),
        metadata=more,
    )
