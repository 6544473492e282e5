"""The format `llm`: the database `logs.db` of the command-line tool llm.

Since version 0.32, messages are stored by content hash, each with its predecessor. A thread refers to its last message, and a turn
contains the usage of a model call. Older versions stored a prompt and its answer in one row of `responses`; these rows still exist.
Reference: `llm.migrations` of llm 0.36 on PyPI, and databases created by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.database import (
    Connection,
    conversations_in,
    has_schema,
    is_database,
    open_own,
    readable_rows,
    row_bytes,
    row_object,
    tables,
)
from moot.formats.kit.fields import flag, milliseconds, obj, text, whole_number
from moot.formats.kit.json import json_object
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject, empty
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part
from moot.types.usage import Usage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "assistant"}
_OLDER = {"conversations": {"id", "name", "model"}, "responses": {"id", "prompt", "response", "conversation_id"}}
_NEWER = {"threads": {"id", "tip_message_hash"}, "turns": {"thread_id", "tip_message_hash"}, "messages": {"hash", "parent_hash", "role"}}
_APPLICATION = "io.datasette.llm"
_CHAIN = """WITH RECURSIVE chain (hash, depth) AS (SELECT ?, 0 UNION SELECT messages.parent_hash, depth + 1 FROM chain
    JOIN messages ON messages.hash = chain.hash WHERE messages.parent_hash IS NOT NULL AND depth < 100000)
    SELECT messages.* FROM chain JOIN messages ON messages.hash = chain.hash ORDER BY depth DESC"""
_PARTS = "SELECT * FROM parts WHERE message_hash = ? ORDER BY position"
_TURNS = "SELECT * FROM turns WHERE thread_id = ? ORDER BY id"
_FRAGMENTS = 'SELECT content FROM part_fragments JOIN fragments ON fragments.id = fragment_id WHERE part_id = ? ORDER BY "order"'
_ATTACHED = (
    'SELECT attachments.* FROM prompt_attachments JOIN attachments ON attachments.id = attachment_id WHERE response_id = ? ORDER BY "order"'
)


class Llm(ReadOnly):
    name = "llm"
    version = 1
    suffix = ".db"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        if named := environ.get("LLM_USER_PATH"):
            yield Path(named).expanduser() / "logs.db"
            return
        yield environment_folder(environ.get("XDG_CONFIG_HOME"), home / ".config") / _APPLICATION / "logs.db"
        yield home / "Library" / "Application Support" / _APPLICATION / "logs.db"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OLDER, _NEWER)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        with open_own(path, "llm", _OLDER, _NEWER) as connection:
            found = tables(connection)
            if has_schema(found, _NEWER):
                convert = partial(_conversation, partial(_thread, connection))
                yield from conversations_in(connection, "SELECT * FROM threads ORDER BY id", convert)
            if has_schema(found, _OLDER):
                convert = partial(_conversation, partial(_older, connection, frozenset(found)))
                yield from conversations_in(connection, "SELECT * FROM conversations ORDER BY id", convert)


def _conversation(read: Callable[[JsonObject, bytes], Records], value: JsonObject, raw: bytes) -> ImportedConversation:
    return ImportedConversation(text(value, "id"), entries_of(read(value, raw)))


def _thread(connection: Connection, thread: JsonObject, raw: bytes) -> Records:
    id, turns = text(thread, "id"), dict[str, JsonObject]()
    problems: list[str] = []
    yield ImportedRecord(raw, thread)
    for row in readable_rows(connection, problems, _TURNS, id):
        turn = row_object(row)
        turns[text(turn, "tip_message_hash")] = turn
        yield ImportedRecord(row_bytes(row), turn)
    first = next(iter(turns.values()), empty())
    source = text(thread, "forked_from")
    metadata: JsonObject = {"forked_from": source} if source else {}
    yield ImportedFacts(title=text(thread, "name"), agent="llm", created_at=milliseconds(first, "datetime_utc"), metadata=metadata)
    for row in readable_rows(connection, problems, _CHAIN, text(thread, "tip_message_hash")):
        found = list(readable_rows(connection, problems, _PARTS, row["hash"]))
        raws = b"".join(row_bytes(one) for one in (row, *found))
        converted = [_part(connection, row_object(one)) for one in found]
        parts = [one for one in converted if not isinstance(one, Output)]
        outputs = tuple(one for one in converted if isinstance(one, Output))
        turn = turns.get(row["hash"], empty())
        role = _ROLES.get(str(row["role"]), "user")
        at = milliseconds(turn, "datetime_utc")
        yield SessionRecord(row["hash"], role, raws, tuple(parts), outputs, at=at, step=_step(turn) if turn else None)
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _part(connection: Connection, part: JsonObject) -> Part | Output:
    payload = json_object(text(part, "payload"))
    words = text(part, "text") or text(payload, "text")
    match part.get("type"):
        case "text":
            borrowed = [str(row[0]) for row in connection.execute(_FRAGMENTS, (part["id"],))] if not words else []
            return text_part(words or "\n".join(borrowed))
        case "reasoning":
            return reasoning(words, obj(payload, "provider_metadata") or None)
        case "tool_call":
            id = text(payload, "tool_call_id") or text(part, "tool_name")
            part_ = tool_call(id, text(payload, "name"), payload.get("arguments"))
            return {**part_, "providerExecuted": True} if flag(payload, "server_executed") else part_
        case "tool_result":
            return _output(payload, payload.get("output"), text(part, "tool_name"))
        case "attachment":
            row = connection.execute("SELECT * FROM attachments WHERE id = ?", (text(payload, "attachment", "id"),)).fetchone()
            return _file(row_object(row)) if row is not None else {"type": "data-file", "data": payload}
        case _:
            return {"type": "data-part", "data": part}


def _older(connection: Connection, found: frozenset[str], value: JsonObject, raw: bytes) -> Records:
    yield ImportedRecord(raw, value)
    yield ImportedFacts(title=text(value, "name"), agent="llm", model=text(value, "model"))
    system, problems = "", list[str]()
    for row in readable_rows(connection, problems, "SELECT * FROM responses WHERE conversation_id = ? ORDER BY id", text(value, "id")):
        response = row_object(row)
        if text(response, "system") and text(response, "system") != system:
            system = text(response, "system")
            yield SessionRecord(f"{response['id']}.system", "system", row_bytes(row), (text_part(system),))
        yield from _response(connection, response, row_bytes(row), found, problems)
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _response(
    connection: Connection, response: JsonObject, raw: bytes, found: frozenset[str], problems: list[str]
) -> Iterator[SessionRecord]:
    """Yield the prompt or the tool outputs in a row of `responses`, followed by the answer."""
    id, when = text(response, "id"), milliseconds(response, "datetime_utc")

    def related(table: str, query: str) -> list[JsonObject]:
        return [row_object(one) for one in readable_rows(connection, problems, query, id)] if table in found else []

    prompt_parts = [text_part(words)] if (words := text(response, "prompt")) else []
    prompt_parts += [_file(one) for one in related("prompt_attachments", _ATTACHED)]
    outputs = tuple(_output(one, text(one, "output"), text(one, "name")) for one in related("tool_results", _RESULTS))
    if outputs:
        yield SessionRecord(f"{id}.results", "assistant", raw, outputs=outputs, at=when)
    if prompt_parts or not outputs:
        yield SessionRecord(f"{id}.prompt", "user", raw, tuple(prompt_parts), at=when)
    parts = [reasoning(thought)] if (thought := text(response, "reasoning")) else []
    parts += [text_part(words)] if (words := text(response, "response")) else []
    for one in related("tool_calls", _CALLS):
        name = text(one, "name")
        parts.append(tool_call(text(one, "tool_call_id") or name, name, json_object(text(one, "arguments"))))
    yield SessionRecord(id, "assistant", raw, tuple(parts), at=when, step=_step(response))


_CALLS = "SELECT * FROM tool_calls WHERE response_id = ? ORDER BY id"
_RESULTS = "SELECT * FROM tool_results WHERE response_id = ? ORDER BY id"


def _output(result: JsonObject, value: Json, id: str) -> Output:
    """Convert a tool output. `id` is used as the call's id if the output does not contain one."""
    failed = text(result, "exception")
    return Output(text(result, "tool_call_id") or id, failed or value, bool(failed), text(result, "name"))


def _step(turn: JsonObject) -> JsonObject:
    details = json_object(text(turn, "token_details"))
    thoughts = whole_number(details, "completion_tokens_details", "reasoning_tokens")
    cached = whole_number(details, "prompt_tokens_details", "cached_tokens")
    usage = Usage(whole_number(turn, "input_tokens"), whole_number(turn, "output_tokens"), cached, None, thoughts)
    return step(text(turn, "resolved_model") or text(turn, "model"), usage=usage.to_json(), ms=whole_number(turn, "duration_ms"))


def _file(attachment: JsonObject) -> Part:
    kind, stored = text(attachment, "type"), text(attachment, "content", "base64")
    if stored:
        return file(f"data:{kind};base64,{stored}", kind)
    if url := text(attachment, "url"):
        return file(url, kind)
    return {"type": "data-file", "data": {"path": text(attachment, "path"), "mediaType": kind}}
