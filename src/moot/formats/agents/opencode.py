"""The format `opencode`: OpenCode's database, `~/.local/share/opencode/opencode.db`, and the output of `opencode export`.

Rows of `session`, `message` and `part` are the current state, and rows of `event` its history. Events are append-only, so they are used as
a message's raw if there are any. A sub-agent's session names its parent, and the parent's `task` call names the session. Reference: schema,
rows and exports of OpenCode 1.18.33, and `packages/opencode/src/session/message-v2.ts` and `storage/db.ts` of
https://github.com/anomalyco/opencode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.database import (
    SQLITE,
    Connection,
    conversations_in,
    is_database,
    open_own,
    readable_rows,
    row_bytes,
    row_object,
    tables,
)
from moot.formats.kit.fields import flag, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.files import read_head
from moot.formats.kit.json import array_items, json_object, members, parse_prefix, read_document
from moot.formats.kit.records import (
    Output,
    Records,
    SessionRecord,
    entries_of,
    file,
    finish_reason,
    reasoning,
    step,
    tool_call,
    usage_without_cache,
)
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_OWN = {
    "session": {"id", "parent_id", "directory", "title"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
_SESSIONS = "SELECT * FROM session ORDER BY parent_id IS NOT NULL, time_created, id"
_MESSAGES = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT * FROM part WHERE message_id = ? ORDER BY id"
_EVENTS = """SELECT seq, CASE WHEN NOT json_valid(data) THEN NULL WHEN json_extract(data, '$.info.role') IS NULL
    THEN json_extract(data, '$.part.messageID') ELSE json_extract(data, '$.info.id') END FROM event WHERE aggregate_id = ? ORDER BY seq"""
"""Query for the events of a session, each with the id of its message, if any."""
_EVENT = "SELECT * FROM event WHERE aggregate_id = ? AND seq = ?"
_CALL = """SELECT json_extract(data, '$.callID') FROM part WHERE session_id = ? AND json_valid(data)
    AND json_extract(data, '$.state.metadata.sessionId') = ?"""
"""Query for the call in the parent's session that a session answers."""
_BOOKKEEPING = frozenset({"step-start", "step-finish"})


class OpenCode(ReadOnly):
    name = "opencode"
    version = 1
    resumable: Literal[True] = True
    suffix = ".db"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share") / "opencode"
        if (named := environ.get("OPENCODE_DB", "")) != ":memory:":
            yield data / (named or "opencode.db")
        yield from sorted(data.glob("opencode-*.db"))  # created by development versions

    def sniff(self, path: Path, head: bytes) -> bool:
        if is_database(path, head, _OWN):
            return True
        value = parse_prefix(head)
        return text(value, "info", "id").startswith("ses_") and bool(text(value, "info", "directory"))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        if not read_head(path).startswith(SQLITE):
            yield _exported(path)
            return
        with open_own(path, "OpenCode", _OWN) as connection:
            events = "event" in tables(connection)

            def convert(session: JsonObject, raw: bytes) -> ImportedConversation:
                id, parent = text(session, "id"), text(session, "parent_id") or None
                row = connection.execute(_CALL, (parent, id)).fetchone() if parent is not None else None
                call = row[0] if row is not None and isinstance(row[0], str) else None
                return ImportedConversation(id, entries_of(_session(connection, session, raw, events=events)), parent, call)

            yield from conversations_in(connection, _SESSIONS, convert)


def _session(connection: Connection, session: JsonObject, raw: bytes, *, events: bool) -> Records:
    id = text(session, "id")
    yield ImportedRecord(raw, session)
    time: JsonObject = {"created": session.get("time_created"), "updated": session.get("time_updated")}
    yield _facts(session, time, json_object(text(session, "model")))
    problems: list[str] = []
    event_map: dict[str, list[int]] = {}  # the key "" holds events without a message
    for row in readable_rows(connection, problems, _EVENTS, id) if events else ():
        event_map.setdefault(row[1] if isinstance(row[1], str) else "", []).append(row[0])
    for row in readable_rows(connection, problems, _MESSAGES, id):
        message = row_object(row)
        parts = list(readable_rows(connection, problems, _PARTS, message["id"]))
        pieces = [{"id": text(one, "id"), **json_object(text(one, "data"))} for one in map(row_object, parts)]
        raws = [row_bytes(event) for seq in event_map.pop(text(message, "id"), ()) for event in connection.execute(_EVENT, (id, seq))]
        raws = raws or [row_bytes(row), *map(row_bytes, parts)]
        info = json_object(text(message, "data"))
        if not info:
            yield ImportedRecord(b"".join(raws), message, f"message {message['id']!r} is not valid JSON")
        else:
            yield _record(text(message, "id"), info, pieces, b"".join(raws))
    for seq in sorted(seq for left in event_map.values() for seq in left):
        for row in connection.execute(_EVENT, (id, seq)):
            yield ImportedRecord(row_bytes(row), row_object(row))
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _facts(session: JsonObject, time: JsonObject, model: JsonObject) -> ImportedFacts:
    return ImportedFacts(
        title=text(session, "title"),
        directory=text(session, "directory"),
        agent="opencode",
        model=f"{text(model, 'id')}@{text(model, 'providerID')}" if text(model, "id") else "",
        created_at=milliseconds(time, "created"),
        updated_at=milliseconds(time, "updated"),
        archived=bool(session.get("time_archived") or time.get("archived")),
    )


def _record(id: str, info: JsonObject, parts: list[JsonObject], raw: bytes) -> SessionRecord:
    at = milliseconds(info, "time", "created")
    parts_ = [_part(part) for part in parts if part.get("type") not in _BOOKKEEPING]
    if info.get("role") != "assistant":
        return SessionRecord(id, "user", raw, tuple(parts_), at=at)
    outputs = [output for part in parts if part.get("type") == "tool" and (output := _output(part)) is not None]
    return SessionRecord(id, "assistant", raw, tuple(parts_), tuple(outputs), at=at, step=_step(info))


def _part(part: JsonObject) -> Part:
    match part.get("type"):
        case "text":
            parts_ = text_part(text(part, "text"))
            return {**parts_, "providerMetadata": {"opencode": {"synthetic": True}}} if flag(part, "synthetic") else parts_
        case "reasoning":
            return reasoning(text(part, "text"), obj(part, "metadata") or None)
        case "tool":
            return tool_call(text(part, "callID"), text(part, "tool"), obj(part, "state").get("input"), title=text(part, "state", "title"))
        case "file":
            return file(text(part, "url"), text(part, "mime"), text(part, "filename"))
        case kind:
            return {"type": f"data-{kind or 'part'}", "data": part}


def _output(part: JsonObject) -> Output | None:
    state = obj(part, "state")
    match state.get("status"):
        case "completed":
            files = [_part(one) for one in objects(state, "attachments")]
            value: Json = state.get("output")
            if files:
                value = {"type": "content", "value": list[Json]([text_part(text(state, "output")), *files])}
            return Output(text(part, "callID"), value)
        case "error":
            return Output(text(part, "callID"), text(state, "error"), error=True)
        case _:
            return None


def _step(info: JsonObject) -> JsonObject:
    """Return the facts of a model call. Input excludes cached tokens; output excludes reasoning tokens if the total shows it."""
    tokens = obj(info, "tokens")
    fresh, output, thoughts, total = (whole_number(tokens, name) for name in ("input", "output", "reasoning", "total"))
    read, written = whole_number(tokens, "cache", "read"), whole_number(tokens, "cache", "write")
    everything = usage_without_cache(fresh, output, read, written).input
    if output is not None and everything is not None and total == everything + output + (thoughts or 0):
        output += thoughts or 0
    time = obj(info, "time")
    started, done = milliseconds(time, "created"), milliseconds(time, "completed")
    return step(
        text(info, "modelID"),
        text(info, "providerID"),
        finish_reason=finish_reason(text(info, "finish")),
        usage=Usage(everything, output, read, written, thoughts).to_json(),
        cost=money(info, "cost") or None,  # OpenCode writes 0 for unknown prices
        ms=done - started if started and done >= started else None,
        error=text(info, "error", "data", "message") or text(info, "error", "name") or None,
    )


def _exported(path: Path) -> ImportedConversation:
    data = read_document(path)
    spans = {span.name: span for span in members(data)}
    span = spans.get("messages")
    info = obj(parse_prefix(data[spans["info"].begin : spans["info"].end])) if "info" in spans else {}
    if not text(info, "id"):
        raise UsageError(f"{str(path)!r} is not a session exported by OpenCode.")
    records = _export_records(data, info, span.begin if span else None)
    return ImportedConversation(text(info, "id"), entries_of(records), text(info, "parentID") or None)


def _export_records(data: bytes, info: JsonObject, begin: int | None) -> Records:
    yield ImportedRecord(data if begin is None else data[:begin], info)
    yield _facts(info, obj(info, "time"), obj(info, "model"))
    for piece in array_items([data[begin:]]) if begin is not None else ():
        about = obj(piece.value, "info")
        if text(about, "id"):
            yield _record(text(about, "id"), about, objects(piece.value, "parts"), piece.raw)
        else:
            yield ImportedRecord(piece.raw, piece.value, piece.problem or f"element {piece.number} is not a message")
