"""The format `kiro-cli`: sessions of Kiro's command line, `~/.kiro/sessions/cli/ID.jsonl` with `ID.json`, and its older database.

If the same conversation is stored under several folders in the database, the newest row is used. If the database has a conversation, its
`.jsonl` is skipped. The files are not documented. Reference: the findings of other programs that read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles, environment_folder, first_object
from moot.formats.kit.database import SQLITE, Connection, first_value, has_schema, is_database, open_own, rows, tables
from moot.formats.kit.documents import json_lines
from moot.formats.kit.fields import items, milliseconds, obj, objects, text
from moot.formats.kit.files import read_head, read_inside
from moot.formats.kit.json import json_object, parse_prefix
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, output_value, step, tool_call
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part

_NEWER = {"conversations_v2": {"key", "conversation_id", "value", "updated_at"}}
_OLDER = {"conversations": {"key", "value"}}
_ROWS = "SELECT key, conversation_id, rowid AS number FROM conversations_v2 ORDER BY updated_at"
_ROW = "SELECT key, value FROM conversations_v2 WHERE rowid = ?"
_OLDER_ROWS = "SELECT key, NULL AS conversation_id, rowid AS number FROM conversations ORDER BY rowid"
_OLDER_ROW = "SELECT key, value FROM conversations WHERE rowid = ?"
_ROLES = {"Prompt": "user", "AssistantMessage": "assistant", "ToolResults": "assistant"}
_LARGEST = 1 << 20
_PROGRAMS = ("kiro-cli", "amazon-q")


class KiroCli(ManyFiles):
    name = "kiro-cli"
    version = 1
    files = ("*.jsonl",)
    companion_names: tuple[str, ...] = ("*.json",)
    stored_files = ("????????-????-????-????-????????????.json",)
    depth = 1
    sniffed_depth = 1

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".kiro" / "sessions" / "cli"
        yield from _databases(home, environ)

    def sources(self, folder: Path) -> Iterator[Path]:
        home = folder.parents[2] if folder.name == "cli" and len(folder.parents) > 2 else None
        known = [path for path in _databases(home, {}) if path.is_file()] if home is not None else []
        for path in super().sources(folder):
            id = text(_companion(path)[1], "session_id") or path.stem
            query = "SELECT 1 FROM conversations_v2 WHERE conversation_id = ?"
            if self.is_own(path, read_head(path)) and not any(first_value(database, query, id) for database in known):
                yield path

    def is_own(self, path: Path, head: bytes) -> bool:
        if head.startswith(SQLITE):
            return is_database(path, head, _NEWER, {**_OLDER, "auth_kv": {"key"}})
        first = first_object(head) or obj(parse_prefix(head))
        return text(first, "kind") in _ROLES and isinstance(obj(first, "data").get("content"), list) and "version" in first

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        if read_head(path).startswith(SQLITE):
            with open_own(path, "Kiro", _NEWER, _OLDER) as connection:
                yield from _stored(connection)
            return
        about = _companion(path)[1]
        yield ImportedConversation(text(about, "session_id") or path.stem, entries_of(_session(path)))


def _databases(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share")
    for program in _PROGRAMS:
        yield data / program / "data.sqlite3"
        yield home / "Library" / "Application Support" / program / "data.sqlite3"


def _companion(path: Path) -> tuple[bytes, JsonObject]:
    """Return the file with the session's title, folder and times."""
    data = read_inside(path.with_suffix(".json"), inside=path.parent, limit=_LARGEST) or b""
    return data, obj(parse_prefix(data))


def _session(path: Path) -> Records:
    raw, about = _companion(path)
    if about:
        yield ImportedRecord(raw, about)
    yield ImportedFacts(
        title=text(about, "title"),
        directory=text(about, "cwd"),
        agent="kiro-cli",
        created_at=milliseconds(about, "created_at"),
        updated_at=milliseconds(about, "updated_at"),
    )
    found = False
    for line in json_lines(path):
        role = _ROLES.get(text(line.value, "kind"), "")
        if line.value is None:
            yield ImportedRecord(line.raw, problem=line.problem)
        elif not role:
            yield ImportedRecord(line.raw, line.value, "" if text(line.value, "kind") else f"line {line.number} has no type")
        else:
            found = True
            data, id = obj(line.value, "data"), text(line.value, "data", "message_id") or str(line.number)
            parts, outputs = _content(data, id)
            at = milliseconds(data, "meta", "timestamp")
            yield SessionRecord(id, "user" if role == "user" else "assistant", line.raw, tuple(parts), tuple(outputs), at=at)
    if not found:
        raise UsageError(f"{str(path)!r} is not a Kiro session: it has no messages.")


def _content(data: JsonObject, id: str) -> tuple[list[Part], list[Output]]:
    parts: list[Part] = []
    outputs: list[Output] = []
    for number, block in enumerate(objects(data, "content")):
        inner = block.get("data")
        match block.get("kind"):
            case "text" if isinstance(inner, str):
                parts.append(text_part(inner))
            case "toolUse" if text(inner, "name"):
                parts.append(tool_call(text(inner, "toolUseId") or f"{id}.{number}", text(inner, "name"), obj(inner).get("input")))
            case "toolResult" if isinstance(inner, dict):
                outputs.append(_output(text(inner, "toolUseId"), inner, text(inner, "status")))
            case _:
                parts.append({"type": "data-block", "data": block})
    return parts, outputs


def _output(call: str, result: JsonObject, status: str) -> Output:
    """Return the output in a result, whose content is text or JSON in the format of the files or of the database."""
    parts: list[Part] = []
    for block in objects(result, "content"):
        words = block.get("data") if block.get("kind") == "text" else block.get("Text")
        parts.append(text_part(words) if isinstance(words, str) else {"type": "data-block", "data": block.get("Json", block)})
    value: Json = output_value(parts, "\n")
    if len(parts) == 1 and parts[0]["type"] == "data-block":
        value = parts[0]["data"]
    failed = status.lower() not in ("success", "")
    return Output(call, dumps(value).decode() if failed and not isinstance(value, str) else value, failed)


def _stored(connection: Connection) -> Iterator[ImportedConversation]:
    is_newer = has_schema(tables(connection), _NEWER)
    newest: dict[str, str] = {}
    problems: list[ImportedRecord] = []
    for row in rows(connection, _ROWS if is_newer else _OLDER_ROWS):
        if isinstance(row, str):
            problems.append(ImportedRecord(b"", problem=row))
        else:
            newest[str(row["conversation_id"] or row["key"])] = str(row["number"])
    for id, number in newest.items():
        for row in rows(connection, _ROW if is_newer else _OLDER_ROW, number):
            if isinstance(row, str):
                problems.append(ImportedRecord(b"", problem=row))
                continue
            written = str(row["value"])
            value = json_object(written)
            yield ImportedConversation(text(value, "conversation_id") or id, entries_of(_history(str(row["key"]), written, value)))
    if problems:
        yield ImportedConversation("damaged", problems)


def _history(key: str, written: str, value: JsonObject) -> Records:
    about = {name: one for name, one in value.items() if name not in ("history", "transcript")}
    yield ImportedFacts(directory=key if key.startswith("/") else "", agent="kiro-cli")
    if not isinstance(value.get("history"), list):
        yield ImportedRecord(written.encode(), about, "'history' contains no messages")
        return
    yield ImportedRecord(dumps(about) + b"\n", {name: one for name, one in about.items() if isinstance(one, str)})
    unnamed = Counter[str]()
    for number, entry in enumerate(items(value, "history"), 1):
        user, assistant, metadata = obj(entry, "user"), obj(entry, "assistant"), obj(entry, "request_metadata")
        spoken = obj(assistant, "Response") or obj(assistant, "ToolUse")
        raw, reply = dumps(user) + b"\n", dumps(assistant) + b"\n"
        id = text(spoken, "message_id")
        if not id:
            content = blake2b(raw + reply, digest_size=8).hexdigest()
            unnamed[content] += 1
            id = content if unnamed[content] == 1 else f"{content}#{unnamed[content] - 1}"
        asked = _asked(f"{id}.prompt", raw, user)
        yield asked or ImportedRecord(raw, entry, f"entry {number} has a prompt of an unknown type")
        if not isinstance(spoken.get("content"), str):
            yield ImportedRecord(reply, entry, f"entry {number} has an answer of an unknown type")
            continue
        parts = [text_part(text(spoken, "content"))] if spoken["content"] else []
        for call in objects(spoken, "tool_uses"):
            parts.append(tool_call(text(call, "id"), text(call, "name"), call.get("args")))
        at, facts = milliseconds(metadata, "stream_end_timestamp_ms"), step(text(metadata, "model_id"))
        yield SessionRecord(id, "assistant", reply, tuple(parts), at=at, step=facts)


def _asked(id: str, raw: bytes, user: JsonObject) -> SessionRecord | None:
    """Return a prompt, or the tool outputs that were sent instead of a prompt."""
    content, at = obj(user, "content"), milliseconds(user, "timestamp")
    if said := text(content, "Prompt", "prompt"):
        return SessionRecord(id, "user", raw, (text_part(said),), at=at)
    kind = next((name for name in content if name in ("ToolUseResults", "CancelledToolUses")), "")
    results = objects(content, kind, "tool_use_results") if kind else []
    if not results:
        return None
    outputs = tuple(_output(text(one, "tool_use_id"), one, text(one, "status")) for one in results)
    said = text(content, kind, "prompt")
    return SessionRecord(id, "assistant", raw, (text_part(said),) if said else (), outputs, at=at)
