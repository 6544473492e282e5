"""The format `goose`: the database of Goose, `~/.local/share/goose/sessions/sessions.db`.

The ledger has a row for each model call. Calls for summaries are added to the answer before them. If there is no ledger, moot stores the
totals of the session with its first answer. Reference: `crates/goose/src/session/session_manager.rs` of https://github.com/block/goose,
and the schema documented by other programs that read the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

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
_Row: TypeAlias = tuple[bytes, JsonObject]
_NOTICES = frozenset(
    {"systemNotification", "toolConfirmationRequest", "conversationCompacted", "summarizationRequested", "contextLengthExceeded"}
)
"""Types of content that don't contain text of the conversation."""


class Goose(ReadOnly):
    name = "goose"
    version = 2
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
    ledger = [(row_bytes(row), row_object(row)) for row in readable_rows(connection, problems, _LEDGER, id)] if has_ledger else []
    answers = sum(_is_answer(row_object(row)) for row in readable_rows(connection, [], _MESSAGES, id)) if ledger else 0
    calls = _calls_of_answers(ledger, answers)
    totals = _facts(session, provider, model, "accumulated_") if not ledger else {}
    if ledger or "usage" not in totals:
        yield ImportedRecord(raw, session)
    place = -1
    for row in readable_rows(connection, problems, _MESSAGES, id):
        value, data = row_object(row), row_bytes(row)
        steps: list[JsonObject] = []
        if _is_answer(value):
            place += 1
            if "usage" in totals:
                data, steps, totals = data + raw, [{**totals, TOTAL_OF: "session"}], {}
            for counted, call in calls.pop(place, []):
                data += counted
                steps.append(_facts(call, provider, text(call, "model") or model))
        yield _message(value, data, steps)
    for counted, call in (one for left in calls.values() for one in left):
        yield ImportedRecord(counted, call, "a model call belongs to no answer, so it is not counted")
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _is_answer(value: JsonObject) -> bool:
    return value.get("role") == "assistant" and not _is_hidden(value)


def _calls_of_answers(ledger: list[_Row], answers: int) -> dict[int, list[_Row]]:
    """Return the model calls for each answer, keyed by the answer's position:
    its own call, then calls for summaries, which have no answer of their own.

    The call of an answer that is still being written is added to the answer before it.
    """
    found: dict[int, list[_Row]] = {}
    before = 0
    for raw, call in ledger:
        is_own = not call.get("is_compaction") and before < answers
        steps = found.setdefault(before if is_own else max(before - 1, 0), [])
        steps.insert(0 if is_own else len(steps), (raw, call))
        before += is_own
    return found


def _is_hidden(value: JsonObject) -> bool:
    return json_object(text(value, "metadata_json")).get("userVisible") is False


def _facts(row: JsonObject, provider: str, model: str, prefix: str = "") -> JsonObject:
    usage = usage_without_cache(*(whole_number(row, prefix + name) for name in _COUNTS)).to_json()
    if prefix and (whole := whole_number(row, "accumulated_input_tokens")) is not None:
        usage["input"] = whole
    return step(model, provider, usage=usage, cost=money(row, "accumulated_cost" if prefix else "cost"))


def _message(value: JsonObject, raw: bytes, steps: list[JsonObject]) -> SessionRecord | ImportedRecord:
    id = text(value, "message_id") or str(value.get("id"))
    content = json_value(value.get("content_json"))
    if not isinstance(content, list):
        return ImportedRecord(raw, value, f"message {id!r} has no list of content")
    blocks, when = objects(content), milliseconds(value, "created_timestamp")
    outputs = tuple(_output(block) for block in blocks if block.get("type") == "toolResponse")
    parts = tuple(_part(block) for block in blocks if block.get("type") not in ("toolResponse", *_NOTICES))
    if value.get("role") == "assistant":
        own, further = (steps[0], tuple(steps[1:])) if steps else (None, ())
        return SessionRecord(id, "assistant", raw, parts, outputs, at=when, step=own, further_steps=further)
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
