"""The format `crush`: the database of Crush in each project, `PROJECT/.crush/crush.db`, listed in `~/.local/share/crush/projects.json`.

The token counts cover only the last model call, so they are not read. The cost covers the whole session, including its sub-agents. moot
stores it with the first answer. Reference: the schema documented by other programs that read the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.database import Connection, conversations_in, is_database, open_own, readable_rows, row_bytes, row_object
from moot.formats.kit.fields import at, flag, milliseconds, money, obj, objects, text
from moot.formats.kit.files import read_head
from moot.formats.kit.json import json_value, parse_json
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, finish_reason, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_OWN = {"sessions": {"id", "parent_session_id", "title", "cost"}, "messages": {"id", "session_id", "role", "parts"}}
_SESSIONS = "SELECT * FROM sessions WHERE id NOT LIKE 'title-%' ORDER BY parent_session_id IS NOT NULL, created_at, id"
_MESSAGES = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid"
_READ = {
    "text": "text",
    "reasoning": "thinking",
    "tool_call": "name",
    "tool_result": "content",
    "finish": "reason",
    "image_url": "url",
}
"""Type of a part → the field of its data that is read."""
_LIST = 4 << 20
"""Maximum size of the file with the list of projects, in bytes."""


class Crush(ReadOnly):
    name = "crush"
    version = 1
    suffix = ".db"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        usual = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share") / "crush"
        data = environment_folder(environ.get("CRUSH_GLOBAL_DATA"), usual)
        try:
            listed = parse_json(read_head(data / "projects.json", _LIST, links=False))
        except (OSError, ValueError):
            return
        for project in objects(listed, "projects"):
            if named := text(project, "data_dir"):
                yield (home / named[2:] if named.startswith("~/") else Path(named)) / "crush.db"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OWN)

    def knows_record(self, body: JsonObject) -> bool:
        if "parent_session_id" in body:  # a row of a session
            return True
        content = json_value(body.get("parts"))
        pieces = objects(content)
        known = all(isinstance(at(one, "data", _READ.get(text(one, "type"), "")), str) for one in pieces)
        return known and isinstance(content, list) and len(pieces) == len(content)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        project = path.parent.parent if path.parent.name == ".crush" else path.parent
        with open_own(path, "Crush", _OWN) as connection:

            def convert(session: JsonObject, raw: bytes) -> ImportedConversation:
                id, parent = text(session, "id"), text(session, "parent_session_id") or None
                call = id.partition("$$")[2] or None
                return ImportedConversation(id, entries_of(_records(connection, session, raw, str(project))), parent, call)

            yield from conversations_in(connection, _SESSIONS, convert)


def _records(connection: Connection, session: JsonObject, raw: bytes, directory: str) -> Records:
    yield ImportedFacts(
        title=text(session, "title"),
        directory=directory,
        agent="crush",
        created_at=milliseconds(session, "created_at"),
        updated_at=milliseconds(session, "updated_at"),
    )
    cost = money(session, "cost") if not text(session, "parent_session_id") else None
    if not cost:
        yield ImportedRecord(raw, session)
    problems: list[str] = []
    for row in readable_rows(connection, problems, _MESSAGES, session["id"]):
        value, data = row_object(row), row_bytes(row)
        content = json_value(value.get("parts"))
        if not isinstance(content, list) or value.get("role") not in ("user", "assistant", "tool"):
            yield ImportedRecord(data, value, f"message {value['id']!r} has an unknown role or no list of parts")
            continue
        totals: JsonObject = {}
        if cost and value.get("role") == "assistant":
            totals = {"cost": cost, TOTAL_OF: "session"}
            data, cost = data + raw, None
        yield _message(value, objects(content), data, totals)
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _message(value: JsonObject, pieces: list[JsonObject], raw: bytes, totals: JsonObject) -> SessionRecord:
    id, when = text(value, "id"), milliseconds(value, "created_at")
    outputs = tuple(_output(obj(piece, "data")) for piece in pieces if piece.get("type") == "tool_result")
    parts = tuple(_part(piece) for piece in pieces if piece.get("type") not in ("tool_result", "finish"))
    if value.get("role") == "assistant":
        reasons = [text(piece, "data", "reason") for piece in pieces if piece.get("type") == "finish"]
        reason = finish_reason(reasons[-1]) if reasons else None
        facts = step(text(value, "model"), text(value, "provider"), finish_reason=reason) | totals
        return SessionRecord(id, "assistant", raw, parts, outputs, at=when, step=facts or {"model": ""})
    if value.get("role") == "tool":
        return SessionRecord(id, "assistant", raw, parts, outputs, at=when)
    return SessionRecord(id, "user", raw, parts, at=when)


def _part(piece: JsonObject) -> Part:
    data = obj(piece, "data")
    match piece.get("type"):
        case "text":
            return text_part(text(data, "text"))
        case "reasoning":
            return reasoning(text(data, "thinking"))
        case "tool_call":
            return tool_call(text(data, "id"), text(data, "name"), json_value(data.get("input")))
        case "image_url":
            return file(text(data, "url"), "image/*")
        case _:
            return {"type": "data-block", "data": piece}


def _output(data: JsonObject) -> Output:
    value: Json = data.get("content")
    return Output(text(data, "tool_call_id"), value, flag(data, "is_error"), text(data, "name"))
