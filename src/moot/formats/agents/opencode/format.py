"""The format `opencode`: OpenCode's database, `~/.local/share/opencode/opencode.db`, the output of `opencode export`, and the messages
and the event stream of `opencode serve`.

Rows of `session`, `message` and `part` contain the current state, and rows of `event` its history. Events are append-only, so they are
used as the raw data of a message if there are any. A sub-agent's session contains the id of its parent, and the parent's `task` call
contains the id of the session. OpenCode 2 stores its sessions in the tables `session_v2` and `session_message` of the same database.
Reference: schema, rows and exports of OpenCode 1.18.33, and `packages/opencode/src/session/message-v2.ts` and `storage/db.ts` of
https://github.com/anomalyco/opencode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Literal

from moot.convert.agents.session import EXACTLY
from moot.errors import UsageError
from moot.formats.agents.opencode.session_messages import call_of, later_messages
from moot.formats.agents.opencode.writer import INFO, SPACE, lines_of, session_of
from moot.formats.kit.bases import environment_folder
from moot.formats.kit.database import (
    SQLITE,
    Connection,
    Schema,
    conversations_in,
    has_schema,
    is_database,
    open_own,
    readable_rows,
    row_bytes,
    row_object,
    tables,
)
from moot.formats.kit.exact import mark_of
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of, session_id_of
from moot.formats.kit.fields import LATEST, flag, milliseconds, money, obj, objects, text, whole_number
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
from moot.types.canonical import Json, JsonObject, dumps, empty
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.format import InstallableSession as Placement
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_OWN = {
    "session": {"id", "parent_id", "directory", "title"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
_SESSION = {"id", "parent_id", "directory", "title"}
_LATER_MESSAGE = {"session_message": {"id", "session_id", "type", "seq", "time_created", "data"}}
_LATER = {"session_v2": _SESSION, **_LATER_MESSAGE}
_BETWEEN = {"session": _SESSION, **_LATER_MESSAGE}
"""Tables of OpenCode 2, and those of its first test versions."""
_ORDER = "ORDER BY parent_id IS NOT NULL, time_created, id"
_SESSIONS = f"SELECT * FROM session {_ORDER}"
_LATER_SESSIONS = f"SELECT * FROM session_v2 {_ORDER}"
_OLDER_SESSIONS = f"SELECT * FROM session AS s WHERE NOT EXISTS (SELECT 1 FROM session_v2 AS v WHERE v.id = s.id) {_ORDER}"
_MESSAGES = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT * FROM part WHERE message_id = ? ORDER BY id"
_EVENTS = """SELECT seq, CASE WHEN NOT json_valid(data) THEN NULL WHEN json_extract(data, '$.info.role') IS NULL
    THEN json_extract(data, '$.part.messageID') ELSE json_extract(data, '$.info.id') END FROM event WHERE aggregate_id = ? ORDER BY seq"""
"""Query for the events of a session, each with the id of its message if it has one."""
_EVENT = "SELECT * FROM event WHERE aggregate_id = ? AND seq = ?"
_CALL = """SELECT json_extract(data, '$.callID') FROM part WHERE session_id = ? AND json_valid(data)
    AND json_extract(data, '$.state.metadata.sessionId') = ?"""
"""Query for the tool call in the parent's session that started a sub-agent's session."""
_FIRST = "SELECT id FROM message WHERE session_id = ? LIMIT 1"
_PROJECT = "SELECT project_id FROM session WHERE id = ?"
_FORKED = "SELECT fork_session_id FROM session_v2 WHERE id = ?"
_BOOKKEEPING = frozenset({"step-start", "step-finish"})


class OpenCode:
    name = "opencode"
    version = 5
    resume_command = ("opencode", "--session")
    resumable: Literal[True] = True
    suffix = ".json"
    words = "a document that OpenCode imports and resumes"
    holds: Mapping[str, FidelityLevel] = ALL_KEPT

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share") / "opencode"
        if (named := environ.get("OPENCODE_DB", "")) != ":memory:":
            yield data / (named or "opencode.db")
        yield from sorted(data.glob("opencode-*.db"))  # created by development versions

    def variants(self, home: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share")
        for program in ("kilo", "mimocode", "icodemate"):
            yield program, data / program / f"{program}.db"

    def write(self, exported: ExportedConversation) -> ExportFile:
        session = session_of(session_id_of(exported.conversation.id, SPACE))
        return ExportFile(b"".join(lines_of(exported, session, _of_document)), fidelity_of(exported, self.holds))

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> Placement:
        if not places:
            words = "OpenCode keeps its sessions only in memory, because OPENCODE_DB is ':memory:'."
            raise UsageError(words, fix="Unset OPENCODE_DB, or export without --install.")
        session = session_of(id)
        path = places[0].parent / "moot" / f"{session}.json"
        data = b"".join(lines_of(exported, session, _of_document))
        command, setup = ("opencode", "--session", session), ("opencode", "import", str(path))
        return Placement(path, data, command, directory, fidelity_of(exported, self.holds), bookkeeping=INFO, setup=setup)

    def neighbors(self, place: Path) -> Iterator[Path]:
        if place.parent.name == "opencode":
            yield place.with_name("opencode-*.db")

    def sniff(self, path: Path, head: bytes) -> bool:
        if is_database(path, head, _OWN, _LATER, _BETWEEN):
            return True
        if _is_event_stream(head):
            return True
        value = parse_prefix(head)
        if text(value, "info", "id").startswith("ses_"):
            return bool(text(value, "info", "directory"))
        first = value[0] if isinstance(value, list) and value else value
        return text(first, "info", "id").startswith("msg_") and text(first, "info", "sessionID").startswith("ses_")

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        head = read_head(path)
        if _is_event_stream(head):
            yield from _streamed(path)
            return
        if not head.startswith(SQLITE):
            first = head.lstrip()[:1]
            yield from _served(path) if first == b"[" or text(parse_prefix(head), "info", "sessionID") else (_exported(path),)
            return
        with open_own(path, "OpenCode", _OWN, _LATER, _BETWEEN) as connection:
            database = _Database(connection, tables(connection))
            for query in database.queries():
                yield from conversations_in(connection, query, partial(database.conversation, is_later=query == _LATER_SESSIONS))


@dataclass(slots=True)
class _Database:
    """A database with the tables of OpenCode 1, of OpenCode 2, or of both."""

    connection: Connection
    tables: Schema

    def queries(self) -> list[str]:
        """Return the queries for all sessions. A session in the tables of both versions is read once."""
        if not has_schema(self.tables, _LATER):
            return [_SESSIONS]
        return [_OLDER_SESSIONS, _LATER_SESSIONS] if "session" in self.tables else [_LATER_SESSIONS]

    def conversation(self, session: JsonObject, raw: bytes, *, is_later: bool) -> ImportedConversation:
        id, parent = text(session, "id"), text(session, "parent_id") or None
        started, forked = whole_number(session, "time_created") or 0, text(session, "fork_session_id") or None
        call = self._call_of(parent, id) if parent is not None else None
        entries = entries_of(self._records(session, raw, is_later=is_later))
        return ImportedConversation(id, entries, parent, call, copied_from=forked, started_at=started)

    def _call_of(self, parent: str, session: str) -> str | None:
        row = self.connection.execute(_CALL, (parent, session)).fetchone() if "part" in self.tables else None
        if row is not None and isinstance(row[0], str):
            return row[0]
        return call_of(self.connection, parent, session) if has_schema(self.tables, _LATER_MESSAGE) else None

    def _records(self, session: JsonObject, raw: bytes, *, is_later: bool) -> Records:
        yield ImportedRecord(raw, session)
        time: JsonObject = {"created": session.get("time_created"), "updated": session.get("time_updated")}
        yield _facts(session, time, json_object(text(session, "model")))
        id, problems = text(session, "id"), list[str]()
        has_older = has_schema(self.tables, _OWN)
        older = self._older(session, problems, events="event" in self.tables and not is_later) if has_older else iter(())
        later: Iterator[tuple[int, SessionRecord | ImportedRecord]] = iter(())
        # versions between 1 and 2 stored some messages in the tables of both
        if has_schema(self.tables, _LATER_MESSAGE) and (is_later or not has_older or self._value(_FIRST, id) is None):
            copied = self._copied(text(session, "fork_session_id")) if is_later else {}
            later = later_messages(self.connection, id, problems, copied, has_older=has_older)
        yield from (record for _, record in merge(older, later, key=itemgetter(0)))
        yield from (ImportedRecord(b"", problem=problem) for problem in problems)

    def _value(self, query: str, *values: str) -> Json:
        row = next(readable_rows(self.connection, [], query, *values), None)
        return None if row is None else row[0]

    def _copied(self, session: str) -> dict[tuple[str, int], str]:
        """Return the identities of the messages of OpenCode 1 in a session and in the sessions from which it was forked."""
        found: dict[tuple[str, int], str] = {}
        seen: set[str] = set()
        while session and session not in seen and has_schema(self.tables, _OWN):
            seen.add(session)
            identities = self._identities(session)
            for row in map(row_object, readable_rows(self.connection, [], _MESSAGES, session)):
                if info := json_object(text(row, "data")):
                    found.setdefault((text(info, "role"), whole_number(row, "time_created") or 0), identities.next(info))
            session = str(self._value(_FORKED, session) or "")
        return found

    def _identities(self, session: str) -> _Identities:
        return _Identities(str(self._value(_PROJECT, session) or ""))

    def _older(self, session: JsonObject, problems: list[str], *, events: bool) -> Iterator[tuple[int, SessionRecord | ImportedRecord]]:
        """Yield the messages of OpenCode 1 with the times at which they were created, followed by the events without a message."""
        id, connection = text(session, "id"), self.connection
        identities = self._identities(id)
        event_map: dict[str, list[int]] = {}  # the key "" contains the events without a message
        for row in readable_rows(connection, problems, _EVENTS, id) if events else ():
            event_map.setdefault(row[1] if isinstance(row[1], str) else "", []).append(row[0])
        for row in readable_rows(connection, problems, _MESSAGES, id):
            message = row_object(row)
            parts = list(readable_rows(connection, problems, _PARTS, message["id"]))
            pieces = [{"id": text(one, "id"), **json_object(text(one, "data"))} for one in map(row_object, parts)]
            raws = [row_bytes(event) for seq in event_map.pop(text(message, "id"), ()) for event in connection.execute(_EVENT, (id, seq))]
            raw = b"".join(raws or [row_bytes(row), *map(row_bytes, parts)])
            info, created = json_object(text(message, "data")), whole_number(message, "time_created") or 0
            if not info:
                yield created, ImportedRecord(raw, message, f"message {message['id']!r} is not valid JSON")
            else:
                yield created, replace(_record(text(message, "id"), info, pieces, raw), identity=identities.next(info))
        for seq in sorted(seq for left in event_map.values() for seq in left):
            for row in connection.execute(_EVENT, (id, seq)):
                yield LATEST, ImportedRecord(row_bytes(row), row_object(row))


class _Identities:
    """Identities of a session's messages. A fork copies messages under new ids, but with the same times, token counts and costs."""

    def __init__(self, project: str) -> None:
        self._before = blake2b(project.encode(), digest_size=16)

    def next(self, info: JsonObject) -> str:
        """Return the identity of the next message, which depends on all messages before it."""
        self._before.update(dumps([info.get(name) for name in ("role", "time", "modelID", "providerID", "tokens", "cost")]))
        return f"opencode:{self._before.hexdigest()}"


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
    mark = next((mark for part in parts if (mark := mark_of(obj(part, "metadata")))), empty())
    parts_ = [_part(part) for part in parts if text(part, "type") not in _BOOKKEEPING]
    if info.get("role") != "assistant":
        return SessionRecord(id, "user", raw, tuple(parts_), at=at, mark=mark)
    outputs = [output for part in parts if part.get("type") == "tool" and (output := _output(part)) is not None]
    return SessionRecord(id, "assistant", raw, tuple(parts_), tuple(outputs), at=at, step=_step(info), mark=mark)


def _of_document(value: JsonObject) -> SessionRecord:
    return _record(text(value, "info", "id"), obj(value, "info"), objects(value, "parts"), b"")


def _part(part: JsonObject) -> Part:
    match part.get("type"):
        case "text":
            parts_ = text_part(text(part, "text"))
            return {**parts_, "providerMetadata": {"opencode": {"synthetic": True}}} if flag(part, "synthetic") else parts_
        case "reasoning":
            metadata = {name: value for name, value in obj(part, "metadata").items() if name != EXACTLY}
            return reasoning(text(part, "text"), metadata or None)
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
    """Return the model, usage and cost of a model call.

    OpenCode's input count excludes cached tokens. Its output count excludes reasoning tokens if the total shows that they are counted
    separately.
    """
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
    if begin is None or data[begin : begin + 1] != b"[":
        yield ImportedRecord(b"", problem="'messages' contains no messages")
    for piece in array_items([data[begin:]]) if begin is not None else ():
        about = obj(piece.value, "info")
        if text(about, "id"):
            yield _record(text(about, "id"), about, objects(piece.value, "parts"), piece.raw)
        else:
            yield ImportedRecord(piece.raw, piece.value, piece.problem or f"element {piece.number} is not a message")


def _served(path: Path) -> Iterator[ImportedConversation]:
    """Yield the conversations in a saved response of `opencode serve`, which is one message or a list of messages."""
    data = read_document(path)
    found: dict[str, list[SessionRecord | ImportedRecord | ImportedFacts]] = {}
    whole = data if data.lstrip()[:1] == b"[" else b"[" + data + b"]"
    last = ""
    for piece in array_items([whole]):
        info = obj(piece.value, "info")
        last = text(info, "sessionID") or last
        records = found.setdefault(last, [_place_of(info)])
        if text(info, "id"):
            records.append(_record(text(info, "id"), info, objects(piece.value, "parts"), piece.raw))
        else:
            records.append(ImportedRecord(piece.raw, piece.value, piece.problem or f"element {piece.number} is not a message"))
    yield from (ImportedConversation(session, entries_of(iter(records))) for session, records in found.items())


def _place_of(info: JsonObject) -> ImportedFacts:
    return ImportedFacts(directory=text(info, "path", "cwd"), agent="opencode")


_EVENT_LINE = re.compile(rb"(?:data: *|event: *[^\n]*\n(?:id: *[^\n]*\n)?data: *)(\{[^\n]*\"properties\" *:[^\n]*)")


def _is_event_stream(head: bytes) -> bool:
    match = _EVENT_LINE.search(head[:20_000])
    return match is not None and (b"ses_" in match[1] or b"server.connected" in match[1])


@dataclass(slots=True)
class _Session:
    """A session in an event stream: the current state of its messages, in the order of their first events."""

    info: JsonObject = field(default_factory=empty)
    messages: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    parts: dict[str, dict[str, JsonObject]] = field(default_factory=dict[str, dict[str, JsonObject]])
    raws: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    others: list[ImportedRecord] = field(default_factory=list[ImportedRecord])

    def take(self, raw: bytes, event: JsonObject) -> None:
        properties = obj(event, "properties")
        info, part = obj(properties, "info"), obj(properties, "part")
        message = text(part, "messageID") or text(properties, "messageID")
        match event.get("type"):
            case "message.updated" if message := text(info, "id"):
                self.messages[message] = info
            case "message.part.updated" if message and text(part, "id"):
                self.parts.setdefault(message, {})[text(part, "id")] = part
            case "message.part.delta" if message and (known := self._part(message, properties)) is not None:
                name = text(properties, "field") or "text"
                known[name] = text(known, name) + text(properties, "delta")
            case "message.part.removed" if message:
                self.parts.get(message, {}).pop(text(properties, "partID"), None)
            case "session.created" | "session.updated" if info:
                self.info, message = info, ""
            case _:
                message = ""
        if message:
            self.raws.setdefault(message, []).append(raw)
        else:
            self.others.append(ImportedRecord(raw, event))

    def _part(self, message: str, properties: JsonObject) -> JsonObject | None:
        parts, id = self.parts.setdefault(message, {}), text(properties, "partID")
        known = parts.get(id)
        if known is not None:
            parts[id] = known = dict(known)
        return known

    def records(self) -> Records:
        yield _facts(self.info, obj(self.info, "time"), obj(self.info, "model")) if self.info else ImportedFacts(agent="opencode")
        for id, raws in self.raws.items():
            info, parts = self.messages.get(id), list(self.parts.get(id, {}).values())
            if info is None:
                yield ImportedRecord(b"".join(raws), problem=f"the stream has parts of message {id!r}, but not the message")
            else:
                yield _record(id, info, parts, b"".join(raws))
        yield from self.others


def _streamed(path: Path) -> Iterator[ImportedConversation]:
    """Yield the conversations of an event stream (`GET /event`)."""
    sessions: dict[str, _Session] = {}
    before: list[ImportedRecord] = []
    session: _Session | None = None
    for raw in read_document(path).splitlines(keepends=True):
        value = raw.strip()
        if not value:
            continue
        event = json_object(value.removeprefix(b"data:").decode("utf-8", "replace")) if value.startswith(b"data:") else {}
        properties = obj(event, "properties")
        id = text(properties, "sessionID") or text(properties, "info", "sessionID") or text(properties, "part", "sessionID")
        session = sessions.setdefault(id, _Session()) if id else session
        if not event and value.startswith(b"data:"):
            (session.others if session else before).append(ImportedRecord(raw, problem="an event is not valid JSON"))
        elif session is None:
            before.append(ImportedRecord(raw, event))
        elif id:
            session.take(raw, event)
        else:
            session.others.append(ImportedRecord(raw, event))
    if not sessions:
        raise UsageError(f"{str(path)!r} contains no session: OpenCode's event stream ended before it identified a session.")
    next(iter(sessions.values())).others[:0] = before
    yield from (ImportedConversation(id, entries_of(session.records())) for id, session in sessions.items())
