"""The format `hermes`: the database of Hermes Agent, `~/.hermes/state.db`.

Tokens and cost are known only for the whole session. moot stores them with the first answer. The transcripts in `sessions/` repeat the
database. Reference: the schema documented by other programs that read the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.database import Connection, conversations_in, is_database, open_own, readable_rows, row_bytes, row_object
from moot.formats.kit.fields import milliseconds, money, objects, text, whole_number
from moot.formats.kit.json import json_value
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, finish_reason, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_OWN = {"sessions": {"id", "started_at", "api_call_count"}, "messages": {"session_id", "role", "content", "tool_calls"}}
_SESSIONS = "SELECT * FROM sessions ORDER BY started_at, id"
_MESSAGES = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"


class Hermes(ReadOnly):
    name = "hermes"
    version = 1
    resume_command = ("hermes", "--resume")
    suffix = ".db"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("HERMES_HOME"), home / ".hermes") / "state.db"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OWN)

    def knows_record(self, body: JsonObject) -> bool:
        return "api_call_count" in body  # a row of a session

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        with open_own(path, "Hermes", _OWN) as connection:

            def convert(session: JsonObject, raw: bytes) -> ImportedConversation:
                entries = entries_of(_records(connection, session, raw))
                return ImportedConversation(text(session, "id"), entries, copied_from=text(session, "parent_session_id") or None)

            yield from conversations_in(connection, _SESSIONS, convert)


def _records(connection: Connection, session: JsonObject, raw: bytes) -> Records:
    model = text(session, "model")
    yield ImportedFacts(
        title=text(session, "title"),
        agent="hermes",
        model=model,
        created_at=milliseconds(session, "started_at"),
        updated_at=milliseconds(session, "ended_at"),
    )
    totals = _totals(session)
    if not totals:
        yield ImportedRecord(raw, session)
    problems: list[str] = []
    for row in readable_rows(connection, problems, _MESSAGES, session["id"]):
        value, data = row_object(row), row_bytes(row)
        if value.get("role") == "assistant" and totals:
            yield _message(value, data + raw, model, totals)
            totals = {}
        else:
            yield _message(value, data, model, {})
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _totals(session: JsonObject) -> JsonObject:
    """Return the session's token counts and cost as fields of a step."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    fresh, output, read, written, thoughts = (whole_number(session, name) for name in names)
    if fresh is None and output is None:
        return {}
    usage = Usage((fresh or 0) + (read or 0) + (written or 0), output, read, written, thoughts).to_json()
    actual, estimated = money(session, "actual_cost_usd"), money(session, "estimated_cost_usd")
    cost = actual if actual is not None else estimated
    is_known = cost is not None and (cost > 0 or text(session, "cost_source") != "none")
    return {"usage": usage, TOTAL_OF: "session", **({"cost": cost} if is_known else {})}


def _message(value: JsonObject, raw: bytes, model: str, totals: JsonObject) -> SessionRecord:
    id, when = str(value.get("id")), milliseconds(value, "timestamp")
    content: Json = value.get("content")
    words = [text_part(content)] if isinstance(content, str) and content else []
    match value.get("role"):
        case "assistant":
            thoughts = text(value, "reasoning_content") or text(value, "reasoning")
            calls = objects(json_value(value.get("tool_calls")))
            parts: list[Part] = [*([reasoning(thoughts)] if thoughts else []), *words, *map(_call, calls)]
            facts = step(model, finish_reason=finish_reason(text(value, "finish_reason"))) | totals
            return SessionRecord(id, "assistant", raw, tuple(parts), at=when, step=facts or {"model": ""})
        case "tool":
            output = Output(text(value, "tool_call_id"), content, name=text(value, "tool_name"))
            return SessionRecord(id, "assistant", raw, outputs=(output,), at=when)
        case role:
            return SessionRecord(id, "system" if role == "system" else "user", raw, tuple(words), at=when)


def _call(call: JsonObject) -> Part:
    return tool_call(text(call, "id"), text(call, "function", "name"), json_value(text(call, "function", "arguments")))
