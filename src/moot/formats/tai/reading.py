"""Sessions of an `agent.db` as conversations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from moot.formats._saying import call as call_part
from moot.formats._source.database import Connection, object_of, raw_of, rows
from moot.formats._source.fields import milliseconds, text
from moot.formats._source.pieces import parsed
from moot.formats._source.turns import Turns
from moot.types.canonical import Json, JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts
from moot.types.message import Role
from moot.types.part import Part, text_part

__all__ = ["conversations"]

_SUMMARY = "[Conversation Summary]"
"""Prefix of the row that replaces all others after /compact."""


def conversations(connection: Connection) -> Iterator[ImportedConversation]:
    """Yield sessions, oldest first. Messages of missing sessions become conversations with the session id that they name."""
    known: set[str] = set()
    for row in rows(connection, "SELECT * FROM sessions ORDER BY created_at, id"):
        if isinstance(row, str):
            break
        session = object_of(row)
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
        yield from _message(turns, object_of(row), raw_of(row))
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
        calls = parsed(column) if isinstance(column, str) else column
    except ValueError:
        return [], "tool_calls is not valid JSON"
    if not isinstance(calls, list):
        return [], "tool_calls is not a list"
    objects = [call for call in calls if isinstance(call, dict)]
    parts = [call_part(text(call.get("id")), text(call.get("name")), call.get("arguments")) for call in objects]
    return parts, "" if len(objects) == len(calls) else "some tool_calls are not objects"
