"""Conversion between rows and values: the only module that maps columns to fields."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any, LiteralString, cast

from moot.plugins.registry import attribute
from moot.store.database.connection import Queries
from moot.types.approval import Answer, Approval, ApprovalPart, Grant, OutsideCall
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.conversation import Conversation
from moot.types.event import Event, from_tombstone
from moot.types.exchange import Exchange, ExchangeOptions, Failure
from moot.types.message import Message, Part
from moot.types.run import Run
from moot.types.usage import Usage

CONVERSATION_COLUMNS = (
    "id, no, project_id, key, client_id, title, title_source, agent, agent_type, model, parent_id, parent_tool_call_id, forked_from_id,"
    " forked_from_message, directory, allowed_uris, is_task_finished, settings, head_id, origin, message_count, usage_input, usage_output,"
    " usage_cache_read, usage_cache_write, usage_reasoning, cost, unpriced_runs, context_usage, created_at, updated_at, archived_at,"
    " deleted_at, owner_id, last_model, host, pinned_at, expires_at"
)
CONVERSATION = (
    f"{CONVERSATION_COLUMNS}, (SELECT json_group_array(json_array(g.tool, g.match, g.granted_at, g.granted_by))"
    " FROM permission_grant AS g WHERE g.conversation = conversation.no),"
    " (SELECT group_concat(k.tag, ' ') FROM conversation_tag AS k WHERE k.conversation = conversation.no)"
)
MESSAGE = (
    "m.id, m.role, m.parts, m.metadata, c.id, m.parent_id, m.run, m.status, m.client_id, m.first_seq, m.last_seq, m.folded_through,"
    " m.created_at, m.conversation"
)
"""Columns selected from `message AS m JOIN conversation AS c`."""
_LISTED_AGENT: LiteralString = (
    "iif({0}agent = 'default' AND {0}origin IS NOT NULL, coalesce(json_extract(CAST({0}origin AS TEXT), '$.agent'),"
    " json_extract(CAST({0}origin AS TEXT), '$.program'), json_extract(CAST({0}origin AS TEXT), '$.format'), {0}agent), {0}agent)"
)
LISTED_AGENT = _LISTED_AGENT.format("")
"""For a row of `conversation`: its agent unless that is `default`, or else the agent, program or format that it was imported from.

SQLite uses the index `conversation_agent` only for this expression.
"""
LISTED_AGENT_OF_C = _LISTED_AGENT.format("c.")
"""The same for a row of `conversation AS c`."""
LISTED_MODEL: LiteralString = "iif(model = '', last_model, model)"
"""The model of a row of `conversation`. SQLite uses the index `conversation_model` only for this expression."""
RUN = (
    "r.id, c.id, r.message, r.no, r.agent, r.agent_type, r.agent_session_id, r.model, r.trigger, r.parent_run, r.status, r.on_crash,"
    " r.owner, r.fence, r.settings, r.error, r.usage, r.cost, r.created_at, r.started_at, r.ended_at, r.result_seq, r.first_seq,"
    " r.last_seq, r.owner_id, r.awaits, r.wake_at"
)
RUN_TABLES = "run AS r JOIN conversation AS c ON c.no = r.conversation"
IS_OPEN = "r.status IN ('queued', 'running', 'waiting', 'interrupted')"
"""The condition of the partial index of open runs; SQLite uses the index only for this condition."""
IS_AT_WORK = f"{IS_OPEN} AND r.status <> 'interrupted'"
"""The run is working, or will continue by itself or once it is answered. Excludes interrupted runs, which may never be resumed."""
APPROVAL = (
    "id, run, tool_call, tool, arguments, digest, asked_at, expires_at, approved, option, reason, answered_by, value, used_at, questions,"
    " parts, patterns, edited, edited_digest, outside"
)
EXCHANGE = (
    "e.id, e.run, c.id, e.purpose, e.dialect, e.converter, e.provider, e.model, e.options, e.request, e.chunk_format, e.ended"
    " FROM exchange AS e JOIN conversation AS c ON c.no = e.conversation"
)
INSERT_EXCHANGE = (
    "INSERT INTO exchange (id, run, conversation, purpose, dialect, converter, provider, model, options, request, chunk_format, ended)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
EVENT = 'id, at, run, exchange, kind, chunks, raw, phase, key, body, "check"'

_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS = bytes(0x31 if 0x30 <= byte <= 0x39 else 0 for byte in range(256))
_LONG_NUMBER = b"1" * 19
_NO_USAGE = Usage()
_EMPTY = b"{}"
_SMALLEST = 512
"""Size in bytes below which compression saves too little."""
_COMPRESSED = b"\x28\xb5\x2f\xfd"  # zstd's magic number


def compressed(data: bytes) -> bytes:
    """Return JSON in the form to store: compressed if it is long enough. zstd is imported only if needed."""
    return data if len(data) < _SMALLEST else attribute("moot.store.log.compression:pack")(data)


def plain(data: bytes) -> bytes:
    """Return stored JSON, decompressed if necessary. zstd is imported only if needed. Raise ValueError if compressed data is damaged."""
    return attribute("moot.store.log.compression:unpack")(data) if data[:4] == _COMPRESSED else data


def plain_or_damaged(data: bytes) -> bytes:
    """Like `plain`, but return damaged data unchanged."""
    try:
        return plain(data)
    except ValueError:
        return data


def parse_stored(data: bytes) -> Json:
    """Parse stored JSON and keep large integers exact. The fast parser would turn integers over 64 bits into floats."""
    # a regular expression takes ten times as long to detect that there is no long number
    return cast("Json", json.loads(data)) if _LONG_NUMBER in data.translate(_DIGITS) else loads(data)


def parse_stored_object(data: bytes) -> JsonObject:
    return {} if data == _EMPTY else cast("JsonObject", parse_stored(data))


def readable(data: bytes) -> Json:
    """Return stored JSON, decompressed if necessary, or None if it is damaged."""
    try:
        return parse_stored(plain(data))
    except ValueError:
        return None


def optional(value: Json) -> bytes | None:
    return None if value is None else dumps(value)


def placeholders(columns: str) -> str:
    return ", ".join("?" * (columns.count(",") + 1))


def conversation_of(row: Any) -> Conversation:
    values: list[Any] = [*row]
    usage, directory, allowed, finished, settings, _, origin = row[21:26], *row[14:20]
    values[21:26] = (_NO_USAGE if usage == (None,) * 5 else Usage(*usage),)
    values[14] = directory.decode("utf-8", "surrogateescape")
    values[15] = tuple(os.fsdecode(uri) for uri in allowed.split(b"\0")) if allowed else ()
    values[16] = bool(finished)
    values[17] = parse_stored_object(settings)
    if origin is not None:
        values[19] = parse_stored_object(origin)
    values[-2] = tuple(Grant(*grant) for grant in json.loads(row[-2])) if row[-2] != "[]" else ()
    values[-1] = tuple(sorted(set(row[-1].split()))) if row[-1] else ()
    return Conversation(*values)


def conversation_row(value: Conversation) -> tuple[object, ...]:
    """Return the values of `CONVERSATION_COLUMNS` without `no`."""
    usage = value.usage
    return (
        *(value.id, value.project, value.key, value.client_id, clean(value.title), value.title_source, value.agent, value.agent_type),
        *(value.model, value.parent, value.parent_tool_call, value.forked_from, value.forked_from_message, os.fsencode(value.directory)),
        *(stored_uris(value.allowed_uris), int(value.is_task_finished), dumps(value.settings), value.head),
        *(optional(value.origin), value.message_count, usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning),
        *(value.cost, value.unpriced_runs, value.context_usage, value.created_at, value.updated_at, value.archived_at),
        *(value.deleted_at, value.owner, value.last_model, value.host, value.pinned_at, value.expires_at),
    )


def stored_uris(uris: Sequence[str]) -> bytes:
    return b"\0".join(os.fsencode(uri) for uri in uris)


def clean(text: str) -> str:
    """Replace lone surrogates with U+FFFD. They can't be stored, because UTF-8 can't encode them."""
    return _SURROGATE.sub("\ufffd", text)


DAMAGED: Part = {"type": "data-damaged", "data": {"column": "parts"}}
"""Placeholder for the parts of a message that can't be read."""


def message_of(row: Any) -> Message:
    values: list[Any] = [*row[:13]]
    try:
        values[2], values[3] = parts_of(parse_stored(plain(row[2]))), parse_stored_object(row[3])
    except ValueError:
        values[2], values[3] = (DAMAGED,), {}
    return Message(*values)


def parts_of(value: Json) -> tuple[Part, ...]:
    """Return the value as message parts. Raise ValueError if it is not a list of objects."""
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise ValueError("message parts must be a list of objects")
    return tuple(cast("list[Part]", value))


def message_body(value: Message) -> JsonObject:
    """Return the body of the `message` event of a complete message."""
    body: JsonObject = {"id": value.id, "role": value.role, "parent": value.parent, "parts": list(value.parts), "metadata": value.metadata}
    if value.client_id is not None:
        body["client_id"] = value.client_id
    return body


def run_of(row: Any) -> Run:
    values: list[Any] = [*row]
    values[14] = parse_stored_object(row[14])
    values[15] = Failure.from_json(parse_stored_object(row[15])) if row[15] is not None else None
    values[16] = Usage.from_json(parse_stored_object(row[16]))
    return Run(*values)


def approval_of(row: Any) -> Approval:
    approved, option, reason, answered_by, value, used_at, questions, parts, patterns, edited, digest, outside = row[8:]
    answer = None
    if approved is not None:
        reply = parse_stored(value) if value is not None else None
        given = tuple(str(text) for text in parse_stored_list(patterns))
        answer = Answer(bool(approved), option, reason, answered_by, reply, given, edited, digest or b"")
    shown = tuple(ApprovalPart.from_json(part) for part in parse_stored_list(parts) if isinstance(part, dict))
    values: list[Any] = [*row[:8], answer, used_at, parse_stored(questions) if questions is not None else None, shown]
    if outside is not None:
        values.append(OutsideCall.from_json(row[2], row[3], row[4], parse_stored_object(outside)))
    return Approval(*values)


def parts_json(parts: Sequence[ApprovalPart]) -> bytes | None:
    """Serialize approval parts; None if there are none."""
    return dumps([part.to_json() for part in parts]) if parts else None


def parse_stored_list(data: bytes | None) -> list[Json]:
    value = parse_stored(data) if data is not None else None
    return value if isinstance(value, list) else []


def exchange_of(row: Any) -> Exchange:
    """Convert a row of `EXCHANGE`."""
    options = parse_stored_object(row[8])
    ids, step, extra = options.get("tool_call_ids"), options.get("step"), options.get("extra")
    values: list[Any] = [*row]
    values[8] = ExchangeOptions(
        str(options.get("prefix", "0")),
        step if isinstance(step, int) else 0,
        tuple(str(id) for id in ids) if isinstance(ids, list) else (),
        extra if isinstance(extra, dict) else {},
    )
    values[9] = parse_stored_object(row[9])
    return Exchange(*values)


def auxiliary_exchanges(queries: Queries, run: str) -> set[str]:
    """Return the ids of the run's exchanges whose chunks are not part of the answer."""
    return {row[0] for row in queries.execute("SELECT id FROM exchange WHERE run = ? AND purpose <> 'answer'", (run,))}


def exchange_row(value: Exchange, conversation: int) -> tuple[object, ...]:
    """Return the columns of `exchange`, in the order of the table."""
    options = value.options
    data = {"prefix": options.prefix, "step": options.step, "tool_call_ids": list(options.tool_call_ids), "extra": options.extra}
    return (
        *(value.id, value.run, conversation, value.purpose, value.dialect, value.converter, value.provider, value.model),
        *(dumps(data), dumps(value.request), value.chunk_format, value.ended),
    )


def event_of(row: Any, run: str | None) -> Event:
    """Convert a row of `EVENT`; `run` is the id for its run number."""
    id, at, _, exchange, kind, chunks, raw, phase, key, body, _check = row
    if exchange is not None:
        exchange = f"{run}{exchange[1:]}" if exchange[0] == ":" else exchange[1:]
    content = None if body is None else parse_stored(body)
    event = Event(kind, tuple(cast("list[JsonObject]", parse_stored(chunks))), raw, run, exchange, phase, key, content, at, id & 0xFFFFFFFF)
    return from_tombstone(event) if kind == "tombstone" else event
