"""The format `goose`: the database of Goose, `~/.local/share/goose/sessions/sessions.db`.

The ledger has a row for each model call. Without it, the totals of the session are stored with its first answer. Reference:
`crates/goose/src/session/session_manager.rs` of https://github.com/block/goose, and the schema that other readers document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.database import Connection, conversations_in, is_database, open_own, readable_rows, row_bytes, row_object, tables
from moot.formats.kit.fields import at, flag, milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.json import json_object, json_value
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, reasoning, step, tool_call, usage_without_cache
from moot.types.canonical import JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_OWN = {"sessions": {"id", "working_dir", "created_at"}, "messages": {"session_id", "role", "content_json", "created_timestamp"}}
_SESSIONS = "SELECT * FROM sessions ORDER BY created_at, id"
_MESSAGES = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
_LEDGER = "SELECT * FROM usage_ledger WHERE session_id = ? ORDER BY id"
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_NOTICES = frozenset(
    {"systemNotification", "toolConfirmationRequest", "conversationCompacted", "summarizationRequested", "contextLengthExceeded"}
)
"""Types of content without text of the conversation."""


class Goose(ReadOnly):
    name = "goose"
    version = 1
    resume_command = ("goose", "session", "--resume", "--session-id")
    suffix = ".db"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share") / "goose"
        root = environ.get("GOOSE_PATH_ROOT", "")
        yield (Path(root) / "data" if root else data) / "sessions" / "sessions.db"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OWN)

    def knows_record(self, body: JsonObject) -> bool:
        return "cost_source" in body or "working_dir" in body  # rows of the ledger and of sessions

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        with open_own(path, "Goose", _OWN) as connection:
            has_ledger = "usage_ledger" in tables(connection)

            def convert(session: JsonObject, raw: bytes) -> ImportedConversation:
                entries = entries_of(_records(connection, session, raw, has_ledger=has_ledger))
                return ImportedConversation(text(session, "id"), entries, text(session, "parent_session_id") or None)

            yield from conversations_in(connection, _SESSIONS, convert)


def _records(connection: Connection, session: JsonObject, raw: bytes, *, has_ledger: bool) -> Records:
    id, model = text(session, "id"), text(json_object(text(session, "model_config_json")), "model_name")
    provider = text(session, "provider_name")
    yield ImportedFacts(
        title=text(session, "name") or text(session, "description"),
        directory=text(session, "working_dir"),
        agent="goose",
        model=f"{model}@{provider}" if model and provider else model,
        created_at=milliseconds(session, "created_at"),
        updated_at=milliseconds(session, "updated_at"),
    )
    problems: list[str] = []
    calls = [(row_bytes(row), row_object(row)) for row in readable_rows(connection, problems, _LEDGER, id)] if has_ledger else []
    totals = _facts(session, provider, model, "accumulated_") if not calls else {}
    if calls or "usage" not in totals:
        yield ImportedRecord(raw, session)
    for row in readable_rows(connection, problems, _MESSAGES, id):
        value, data = row_object(row), row_bytes(row)
        facts: JsonObject = {}
        if value.get("role") == "assistant" and not _is_hidden(value):
            if calls:
                counted, call = calls.pop(0)
                data, facts = data + counted, _facts(call, provider, text(call, "model") or model)
            elif "usage" in totals:
                data, facts, totals = data + raw, {**totals, TOTAL_OF: "session"}, {}
        yield _message(value, data, facts)
    for counted, call in calls:  # calls without an answer, such as those of summaries
        yield SessionRecord(f"ledger-{call.get('id')}", "assistant", counted, step=_facts(call, provider, text(call, "model") or model))
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _is_hidden(value: JsonObject) -> bool:
    return json_object(text(value, "metadata_json")).get("userVisible") is False


def _facts(row: JsonObject, provider: str, model: str, prefix: str = "") -> JsonObject:
    usage = usage_without_cache(*(whole_number(row, prefix + name) for name in _COUNTS)).to_json()
    if prefix and (whole := whole_number(row, "accumulated_input_tokens")) is not None:
        usage["input"] = whole
    return step(model, provider, usage=usage, cost=money(row, "accumulated_cost" if prefix else "cost"))


def _message(value: JsonObject, raw: bytes, facts: JsonObject) -> SessionRecord | ImportedRecord:
    id = text(value, "message_id") or str(value.get("id"))
    content = json_value(value.get("content_json"))
    if not isinstance(content, list):
        return ImportedRecord(raw, value, f"message {id!r} has no list of content")
    blocks, when = objects(content), milliseconds(value, "created_timestamp")
    outputs = tuple(_output(block) for block in blocks if block.get("type") == "toolResponse")
    parts = tuple(_part(block) for block in blocks if block.get("type") not in ("toolResponse", *_NOTICES))
    if value.get("role") == "assistant":
        return SessionRecord(id, "assistant", raw, parts, outputs, at=when, step=facts or None)
    if outputs:
        return SessionRecord(id, "assistant", raw, parts, outputs, at=when)
    if not parts:
        return ImportedRecord(raw, value)
    return SessionRecord(id, "system" if _is_hidden(value) else "user", raw, parts, at=when)


def _part(block: JsonObject) -> Part:
    match block.get("type"):
        case "text":
            return text_part(text(block, "text"))
        case "thinking":
            signature = text(block, "signature")
            return reasoning(text(block, "thinking"), {"anthropic": {"signature": signature}} if signature else None)
        case "image":
            return file(f"data:{text(block, 'mimeType')};base64,{text(block, 'data')}", text(block, "mimeType"))
        case "toolRequest" if obj(block, "toolCall", "value"):
            return tool_call(text(block, "id"), text(block, "toolCall", "value", "name"), at(block, "toolCall", "value", "arguments"))
        case _:
            return {"type": "data-block", "data": block}


def _output(block: JsonObject) -> Output:
    result = obj(block, "toolResult")
    if "error" in result:
        return Output(text(block, "id"), result["error"], error=True)
    content = objects(result, "value", "content")
    words = "\n".join(text(one, "text") for one in content if one.get("type") == "text")
    is_text = bool(content) and all(one.get("type") == "text" for one in content)
    return Output(text(block, "id"), words if is_text else at(result, "value"), flag(result, "value", "isError"))
