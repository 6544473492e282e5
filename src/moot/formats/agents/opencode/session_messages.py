"""Messages of OpenCode 2, which are rows of the table `session_message`.

`data` has the content of a message, and `seq` is its position. OpenCode 2 copies the sessions of OpenCode 1 once, with the same ids for
sessions and messages, and keeps the older tables. A fork has copies of its parent's rows under new ids, but with the same `seq` and `data`.
Reference: `packages/schema/src/{session-message,prompt,tool,shell,token-usage}.ts` and `packages/core/src/{session/projector,
database/v1-migration}.ts` of https://github.com/anomalyco/opencode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TypeAlias

from moot.formats.kit.database import Connection, readable_rows, row_bytes, row_object
from moot.formats.kit.fields import at, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.json import json_object, json_value
from moot.formats.kit.records import (
    Output,
    SessionRecord,
    file,
    finish_reason,
    output_value,
    reasoning,
    step,
    tool_call,
    usage_without_cache,
)
from moot.types.canonical import JsonObject, dumps
from moot.types.format import ImportedRecord
from moot.types.message import Part, text_of, text_part
from moot.types.usage import Usage

Copied: TypeAlias = Mapping[tuple[str, int], str]
"""Role and time of creation of a message of OpenCode 1 → its identity."""

_ROWS = "SELECT * FROM session_message WHERE session_id = ? ORDER BY seq"
_NEW_ROWS = """SELECT * FROM session_message AS s WHERE session_id = ?1
    AND id NOT IN (SELECT id FROM message WHERE session_id = ?1 AND id IS NOT NULL)
    AND NOT (type = 'synthetic' AND EXISTS (SELECT 1 FROM message AS m WHERE m.session_id = ?1
        AND m.time_created = s.time_created AND substr(m.id, 1, 16) = substr(s.id, 1, 16))) ORDER BY seq"""
"""Query for the rows that were not copied from the tables of OpenCode 1. Only the beginning of the id of a synthetic text is copied."""
_NAMING = "SELECT data FROM session_message WHERE session_id = ? AND type = 'assistant' AND instr(data, ?) ORDER BY seq"


def later_messages(
    connection: Connection, session: str, problems: list[str], copied: Copied, *, has_older: bool
) -> Iterator[tuple[int, SessionRecord | ImportedRecord]]:
    """Yield the messages of a session that are not in the tables of OpenCode 1, each with the time at which it was created.

    `copied` has the identities of messages that a fork may have copied. `has_older` is true if the database has the older tables.
    """
    for row in readable_rows(connection, problems, _NEW_ROWS if has_older else _ROWS, session):
        value = row_object(row)
        yield whole_number(value, "time_created") or 0, _record(value, row_bytes(row), copied)


def call_of(connection: Connection, parent: str, session: str) -> str | None:
    """Return the id of the tool call that started a sub-agent's session, or None."""
    for row in readable_rows(connection, [], _NAMING, parent, session):
        for item in objects(json_object(text(row_object(row), "data")), "content"):
            named = obj(item, "state", "metadata")
            if session in (named.get("sessionID"), named.get("sessionId")):
                return text(item, "id")
    return None


def _record(row: JsonObject, raw: bytes, copied: Copied) -> SessionRecord | ImportedRecord:
    id, kind, data = text(row, "id"), text(row, "type"), json_object(text(row, "data"))
    when, identity = milliseconds(row, "time_created"), _identity(row, data, copied)
    if not data:
        return ImportedRecord(raw, row, f"message {id!r} is not valid JSON")
    match kind:
        case "user":
            return SessionRecord(id, "user", raw, tuple(_prompt(data)), at=when, identity=identity)
        case "system" | "synthetic" | "skill":
            return SessionRecord(id, "system", raw, (text_part(text(data, "text")),), at=when)
        case "shell":
            call = text(data, "shellID") or id
            parts = (tool_call(call, "shell", {"command": data.get("command")}),)
            return SessionRecord(id, "assistant", raw, parts, tuple(_shell_output(call, data)), at=when)
        case "assistant":
            items = objects(data, "content")
            outputs = [output for item in items if item.get("type") == "tool" for output in _output(item)]
            parts = tuple(_part(item, text(data, "model", "providerID")) for item in items)
            return SessionRecord(id, "assistant", raw, parts, tuple(outputs), at=when, step=_step(data) or {"model": ""}, identity=identity)
        case "compaction":
            about: JsonObject = {name: data[name] for name in ("reason", "status", "error") if name in data}
            shown: list[Part] = [{"type": "data-compaction", "data": about}]
            shown += [text_part(text(data, "summary"))] if text(data, "summary") else []
            call_facts = _step(data) if "tokens" in data or "cost" in data else None
            return SessionRecord(id, "assistant", raw, tuple(shown), at=when, step=call_facts, identity=identity)
        case _:  # such as a change of the model
            return ImportedRecord(raw, {"type": kind, **data})


def _identity(row: JsonObject, data: JsonObject, copied: Copied) -> str:
    """Return the identity of a message, which its copies in forks share, or an empty string while the message can still change."""
    kind, created = text(row, "type"), whole_number(row, "time_created") or 0
    if (known := copied.get((kind, created))) is not None:
        return known
    if kind == "assistant" and not at(data, "time", "completed"):
        return ""
    done, facts = at(data, "time", "completed"), [data.get(name) for name in ("model", "tokens", "cost", "text")]
    return f"opencode:2:{blake2b(dumps([kind, row.get('seq'), created, done, *facts]), digest_size=16).hexdigest()}"


def _prompt(data: JsonObject) -> Iterator[Part]:
    if text(data, "text"):
        yield text_part(text(data, "text"))
    for one in objects(data, "files"):
        url = text(one, "uri") or text(one, "source", "uri")
        if text(one, "data"):
            url = f"data:{text(one, 'mime')};base64,{text(one, 'data')}"
        yield file(url, text(one, "mime"), text(one, "name"))
    for name in ("agents", "skills"):
        for one in objects(data, name):
            yield {"type": f"data-{name.removesuffix('s')}", "data": one}


def _part(item: JsonObject, provider: str) -> Part:
    match item.get("type"):
        case "text":
            return text_part(text(item, "text"))
        case "reasoning":
            signed = obj(item, "native") or obj(item, "state")
            return reasoning(text(item, "text"), {provider or "opencode": signed} if signed else None)
        case "tool":
            return tool_call(text(item, "id"), text(item, "name"), json_value(at(item, "state", "input")))
        case kind:
            return {"type": f"data-{kind or 'part'}", "data": item}


def _output(item: JsonObject) -> Iterator[Output]:
    call, state = text(item, "id"), obj(item, "state")
    parts = [_content(one) for one in objects(state, "content")]
    match state.get("status"):
        case "completed":
            yield Output(call, output_value(parts, "\n") if parts else state.get("result", state.get("structured")))
        case "error":
            words = (text(state, "error", "message"), text_of(parts))
            yield Output(call, "\n".join(filter(None, words)), error=True)
        case _:
            return


def _content(one: JsonObject) -> Part:
    match one.get("type"):
        case "text":
            return text_part(text(one, "text"))
        case "file":
            return file(text(one, "uri"), text(one, "mime"), text(one, "name"))
        case kind:
            return {"type": f"data-{kind or 'part'}", "data": one}


def _shell_output(call: str, data: JsonObject) -> Iterator[Output]:
    """Yield the output of a command that the user ran, unless it is still running."""
    if data.get("status") != "running":
        yield Output(call, text(data, "output", "output"), error=data.get("status") in ("timeout", "killed"))


def _step(data: JsonObject) -> JsonObject:
    """Return the model, usage and cost of a model call. The input count excludes cached tokens, and the output count excludes reasoning."""
    tokens = obj(data, "tokens")
    fresh, output, thoughts = (whole_number(tokens, name) for name in ("input", "output", "reasoning"))
    read, written = whole_number(tokens, "cache", "read"), whole_number(tokens, "cache", "write")
    everything = usage_without_cache(fresh, output, read, written).input
    output = None if output is None else output + (thoughts or 0)
    started = milliseconds(data, "time", "created")
    done = milliseconds(data, "time", "streamed") or milliseconds(data, "time", "completed")
    return step(
        text(data, "model", "id"),
        text(data, "model", "providerID"),
        finish_reason=finish_reason(text(data, "finish")),
        usage=Usage(everything, output, read, written, thoughts).to_json(),
        cost=money(data, "cost") or None,  # OpenCode writes 0 for unknown prices
        ms=done - started if started and done >= started else None,
        error=text(data, "error", "message") or None,
    )
