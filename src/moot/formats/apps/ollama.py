"""The format `ollama`: the database `db.sqlite` of Ollama's app. The server and `ollama run` store no conversations.

The app rewrites all rows of a chat when it saves the chat, so messages are identified by their position. Reference: schema and queries in
`app/store/database.go` (schema version 18) and the location in `app/store/store.go` of https://github.com/ollama/ollama, as of August 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.database import Connection, conversations_in, is_database, open_own, readable_rows, row_bytes, row_object, tables
from moot.formats.kit.fields import milliseconds, text
from moot.formats.kit.json import json_value
from moot.formats.kit.records import Output, Records, SessionRecord, detect_media_type, entries_of, file_of, reasoning, step, tool_call
from moot.types.canonical import JsonObject
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "assistant"}
_OWN = {"chats": {"id", "title", "created_at"}, "messages": {"id", "chat_id", "role", "content", "model_name"}}
_CALL = "call"
"""The id that is used for every tool call, because the database has no call ids.
An output belongs to the first call that has no output yet.
"""
_MESSAGES = "SELECT * FROM messages WHERE chat_id = ? ORDER BY id"
_CALLS = "SELECT * FROM tool_calls WHERE message_id = ? ORDER BY id"
_FILES = "SELECT * FROM attachments WHERE message_id = ? ORDER BY id"


class Ollama(ReadOnly):
    name = "ollama"
    version = 1
    suffix = ".sqlite"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / "Library" / "Application Support" / "Ollama" / "db.sqlite"
        yield home / ".ollama" / "db.sqlite"  # on systems other than macOS and Windows
        if folder := environ.get("LOCALAPPDATA"):
            yield Path(folder) / "Ollama" / "db.sqlite"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OWN)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        with open_own(path, "Ollama's app", _OWN) as connection:
            found = frozenset(tables(connection))

            def convert(chat: JsonObject, raw: bytes) -> ImportedConversation:
                return ImportedConversation(text(chat, "id"), entries_of(_records(connection, chat, raw, found)))

            yield from conversations_in(connection, "SELECT id, title, created_at FROM chats ORDER BY created_at, id", convert)


def _records(connection: Connection, chat: JsonObject, raw: bytes, found: frozenset[str]) -> Records:
    yield ImportedRecord(raw, chat)
    yield ImportedFacts(title=text(chat, "title"), agent="ollama", created_at=milliseconds(chat, "created_at"))
    problems: list[str] = []
    for number, row in enumerate(readable_rows(connection, problems, _MESSAGES, text(chat, "id")), 1):
        message = row_object(row)
        raws = [row_bytes(row)]
        calls: list[Part] = []
        outputs: list[Output] = []
        for one in readable_rows(connection, problems, _CALLS, message["id"]) if "tool_calls" in found else ():
            tool_row = row_object(one)
            raws.append(row_bytes(one))
            calls.append(tool_call(_CALL, text(tool_row, "function_name"), json_value(tool_row.get("function_arguments"))))
            if text(tool_row, "function_result"):
                outputs.append(Output(_CALL, json_value(tool_row.get("function_result"))))
        for one in readable_rows(connection, problems, _FILES, message["id"]) if "attachments" in found else ():
            raws.append(row_bytes(one))
            data = one["data"] if isinstance(one["data"], bytes) else str(one["data"] or "").encode()
            calls.append(file_of(data, detect_media_type(data, "text/plain"), str(one["filename"] or "")))
        yield _message(str(number), message, b"".join(raws), calls, outputs)
    yield from (ImportedRecord(b"", problem=problem) for problem in problems)


def _message(id: str, message: JsonObject, raw: bytes, raws: list[Part], outputs: list[Output]) -> SessionRecord:
    role, when = _ROLES.get(text(message, "role"), "user"), milliseconds(message, "created_at")
    if message.get("role") == "tool":
        value = json_value(message.get("tool_result")) or text(message, "content")
        return SessionRecord(id, role, raw, outputs=(Output(_CALL, value),), at=when)
    words = text(message, "content")
    parts = [reasoning(thought)] if (thought := text(message, "thinking")) else []
    parts += [text_part(words)] if words else []
    facts = step(text(message, "model_name")) if role == "assistant" else None
    return SessionRecord(id, role, raw, (*parts, *raws), tuple(outputs), at=when, step=facts)
