"""The format `cherry`: agent sessions of Cherry Studio versions 1 and 2, and the chats of version 2.

The format can't be written, because the schema changes often and version 1 is obsolete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.convert.agents.claude_session import ClaudeMessage
from moot.convert.fold import Folder
from moot.errors import UsageError
from moot.formats.apps.cherry.configuration import configuration, model_of
from moot.formats.kit.database import (
    Connection,
    is_database,
    open_own,
    readable_rows,
    row_bytes,
    row_object,
    row_objects,
    rows,
    tables,
)
from moot.formats.kit.documents import json_lines
from moot.formats.kit.fidelity import Tally, things_in
from moot.formats.kit.fields import amount, at, flag, items, milliseconds, money, obj, objects, text
from moot.formats.kit.files import files_below, read_head
from moot.formats.kit.json import json_object, json_value
from moot.formats.kit.records import reasoning
from moot.formats.kit.trees import sort_tree
from moot.types.canonical import JsonObject, dumps
from moot.types.format import (
    Entry,
    ExportedConversation,
    ExportFile,
    ForeignConfiguration,
    ImportedConversation,
    ImportedFacts,
    ImportedMessage,
    ImportedRecord,
)
from moot.types.message import Part, text_part

_DATA = {"translation": "data-translation", "code": "data-code", "compact": "data-compact", "error": "data-error", "video": "data-video"}
_ABOUT = ("id", "messageId", "createdAt", "updatedAt", "status", "type")
_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}


def _block_parts(block: JsonObject) -> Iterator[Part]:
    """Yield the parts of a block. Unknown blocks are kept as data."""
    kind, content = text(block, "type"), block.get("content")
    match kind:
        case "main_text":
            if isinstance(content, str) and content:
                yield text_part(content)
        case "thinking":
            yield reasoning(str(content or ""))
        case "tool":
            yield _tool(block)
        case "image" | "file":
            yield _file(block, is_picture=kind == "image")
        case "citation":
            yield from _sources(block)
        case "unknown":
            return
        case _:
            data: JsonObject = {name: value for name, value in block.items() if name not in _ABOUT}
            yield {"type": _DATA.get(kind, "data-block"), "data": data if kind in _DATA else block}


def _tool(block: JsonObject) -> Part:
    raw = obj(block, "metadata", "rawMcpToolResponse")
    content = block.get("content")
    arguments = block.get("arguments") if block.get("arguments") is not None else raw.get("arguments")
    part: Part = {"type": "dynamic-tool", "toolName": str(block.get("toolName") or at(raw, "tool", "name") or "unknown")}
    part |= {"toolCallId": str(block.get("toolId") or raw.get("toolCallId") or block.get("id") or "call"), "input": arguments}
    output = raw.get("response") if raw.get("response") is not None else content
    if flag(content, "isError") or raw.get("status") == "error":
        return {**part, "state": "output-error", "errorText": output if isinstance(output, str) else dumps(output).decode()}
    return {**part, "state": "input-available"} if output is None else {**part, "state": "output-available", "output": output}


def _file(block: JsonObject, *, is_picture: bool) -> Part:
    """Return a file part with a URL. Local files are not read, so the URL may work only in Cherry Studio."""
    about = obj(block, "file")
    fallback = "image/png" if is_picture else "application/octet-stream"
    kind = _PICTURES.get(str(about.get("ext") or "").lower(), fallback)
    url = block.get("url") or (f"file://{about['path']}" if about.get("path") else "")
    part: Part = {"type": "file", "mediaType": kind, "url": str(url)}
    return {**part, "filename": str(about["origin_name"])} if about.get("origin_name") else part


def _sources(block: JsonObject) -> Iterator[Part]:
    for number, one in enumerate(items(block, "response", "results", "results") or items(block, "response", "results"), 1):
        if isinstance(url := at(one, "url"), str):
            yield {"type": "source-url", "sourceId": f"{block.get('id')}-{number}", "url": url, "title": str(at(one, "title") or "")}
    yield {"type": "data-citation", "data": block}


_ROLES = ("user", "assistant", "system")
_COUNTS = {
    "input": ("inputTokens", "promptTokens", "prompt_tokens"),
    "output": ("outputTokens", "completionTokens", "completion_tokens"),
    "reasoning": ("reasoningTokens", "thoughtsTokens", "thoughts_tokens"),
}


def message_of(row: JsonObject, raw: bytes, parent: str | None) -> ImportedMessage | ImportedRecord:
    """Return the message in a row. If it can't be read, return the row as a record with a description of the problem."""
    written = json_value(row.get("data")) or json_value(row.get("content"))
    plain = text(written)  # unless it is damaged JSON
    content: JsonObject = written if isinstance(written, dict) else {"parts": [text_part(plain)]} if plain[:1] not in ("", "{", "[") else {}
    if not content:
        return ImportedRecord(raw, row, f"row {row.get('id')!r} has no readable content")
    message = obj(content, "message")
    role = message.get("role") or row.get("role")
    if role not in _ROLES:
        return ImportedRecord(raw, row, f"row {row.get('id')!r} has the unknown role {role!r}")
    held = items(content, "parts") or items(message, "data", "parts") or items(message, "parts")
    blocks = objects(content.get("blocks") or at(message, "data", "blocks"))
    parts = [part for part in held if isinstance(part, dict) and isinstance(part.get("type"), str)]
    parts = parts or [part for block in blocks for part in _block_parts(block)] or _streamed(content)
    if row.get("status") == "pending" and not parts:
        return ImportedRecord(raw, row, f"row {row.get('id')!r} is a pending answer without content")
    id = message.get("id") or row.get("id")
    when = milliseconds(message, "createdAt") or milliseconds(row, "created_at")
    return ImportedMessage(role, tuple(parts), str(id), raw, parent, when, _metadata(row, message) if role == "assistant" else {})


def _streamed(content: JsonObject) -> list[Part]:
    """Return the parts from a stored stream.

    The stream contains the agent's messages, chunks of the AI SDK, or plain text. These are tried in this order.
    """
    answer = ClaudeMessage()
    for one in objects(content, "rawAgentMessages"):
        if one.get("type") == "assistant":
            answer.said(one)
        for block in objects(one, "message", "content") if one.get("type") == "user" else ():
            answer.output(block, one)
    folder, begun = Folder(), set[str]()
    for chunk in objects(content, "aiSDKChunks"):
        for one in _chunks(chunk, begun):
            folder.feed(one)
    words = text(content, "content")
    return list(answer.parts(over=True) or folder.parts()) or ([text_part(words)] if words else [])


def _chunks(chunk: JsonObject, begun: set[str]) -> Iterator[JsonObject]:
    """Convert a part of the AI SDK's text stream to UI message chunks. UI message chunks are not changed."""
    kind, call = text(chunk, "type"), {"toolCallId": text(chunk, "toolCallId"), "dynamic": True}
    match kind:
        case "text-start" | "reasoning-start":
            begun.add(text(chunk, "id"))
            yield chunk
        case "text-delta" | "reasoning-delta":
            id = text(chunk, "id") or kind
            if id not in begun:
                begun.add(id)
                yield {"type": kind.replace("delta", "start"), "id": id}
            yield {"type": kind, "id": id, "delta": text(chunk, "delta") or text(chunk, "text")}
        case "tool-call":
            yield {**call, "type": "tool-input-available", "toolName": text(chunk, "toolName"), "input": chunk.get("input")}
        case "tool-result":
            yield {**call, "type": "tool-output-available", "output": chunk.get("output")}
        case "tool-error":
            yield {**call, "type": "tool-output-error", "errorText": text(chunk, "error") or "failed"}
        case _:
            yield chunk


def _metadata(row: JsonObject, message: JsonObject) -> JsonObject:
    model, provider = model_of(row.get("model_id") or message.get("modelId"))
    named_snapshots = (json_object(row.get(name)) for name in ("message_snapshot", "model_snapshot", "model_meta"))
    about = next(filter(None, named_snapshots), message).get("model")
    if isinstance(about, dict):
        model, provider = str(about.get("id") or model), str(about.get("provider") or provider)
    metadata: JsonObject = {name: value for name, value in (("model", model), ("provider", provider)) if value}
    stats = json_object(row.get("stats")) or json_object(message.get("usage"))
    step: JsonObject = {"step": 1, "usage": _usage(stats), "cost": _cost(stats)}
    if model:
        step["model"] = f"{model}@{provider}" if provider else model
    if (ms := amount(stats, "timeCompletionMs")) is not None:
        step["ms"] = int(ms)
    status = row.get("status") or message.get("status")
    more: JsonObject = {"steps": [step]} if step["usage"] or step["cost"] is not None else {}
    more |= {"finish_reason": "error"} if status == "error" else {}
    return {**metadata, **more}


def _usage(stats: JsonObject) -> JsonObject:
    inputs, outputs = json_object(stats.get("inputTokenDetails")), json_object(stats.get("outputTokenDetails"))
    found: JsonObject = {}
    for name, keys in _COUNTS.items():
        count = next((value for key in keys if type(value := stats.get(key, outputs.get(key))) is int), None)
        if count is not None:
            found[name] = count
    for name, key in (("cache_read", "cacheReadTokens"), ("cache_write", "cacheWriteTokens")):
        if type(count := inputs.get(key)) is int:
            found[name] = count
    return found


def _cost(stats: JsonObject) -> int | None:
    """Return the cost if all amounts are in dollars. Return None for other currencies."""
    if isinstance(costs := stats.get("costs"), list):
        dollars = [money(one, "amount") for one in objects(costs) if one.get("currency") in ("USD", "$")]
        amounts = [amount for amount in dollars if amount is not None]
        return sum(amounts) if amounts and len(amounts) == len(costs) else None
    return money(stats, "cost")


SESSIONS = (
    (
        *("agent_session", "agent_session_message"),
        "SELECT * FROM agent_session ORDER BY created_at, id",
        "SELECT * FROM agent_session_message WHERE session_id = ? ORDER BY created_at, id",
        "SELECT DISTINCT session_id FROM agent_session_message WHERE session_id NOT IN (SELECT id FROM agent_session) ORDER BY 1",
    ),
    (
        *("agents_sessions", "agents_session_messages"),
        "SELECT * FROM agents_sessions ORDER BY created_at, id",
        "SELECT * FROM agents_session_messages WHERE session_id = ? ORDER BY created_at, id",
        "SELECT DISTINCT session_id FROM agents_session_messages WHERE session_id NOT IN (SELECT id FROM agents_sessions) ORDER BY 1",
    ),
    (
        *("sessions", "session_messages"),
        "SELECT * FROM sessions ORDER BY created_at, id",
        "SELECT * FROM session_messages WHERE session_id = ? ORDER BY created_at, id",
        "SELECT DISTINCT session_id FROM session_messages WHERE session_id NOT IN (SELECT id FROM sessions) ORDER BY 1",
    ),
)
"""For each version of the schema, newest first: the tables of sessions and their messages, and the queries for all sessions, for the
messages of a session, and for the ids of deleted sessions whose messages still exist.
"""
_RESUME = ("runtime_resume_token", "agent_session_id")
"""Columns that contain the session id of the agent that Cherry Studio starts. The last value found is used."""
_KEPT = ("agent_type", "agent_id", "instructions", "description", "permission_mode")


def sessions(connection: Connection, there: Mapping[str, frozenset[str]], home: Path) -> Iterator[ImportedConversation]:
    """Yield sessions, oldest first. Messages of deleted sessions, which older versions left behind, come last."""
    for table, messages, all_sessions, all_messages, orphans in SESSIONS:
        if table not in there or messages not in there:
            continue
        folders = row_objects(connection, "SELECT * FROM agent_workspace") if "agent_workspace" in there else []
        workspaces = {str(one.get("id")): str(one.get("path") or "") for one in folders}
        for session in _all(connection, all_sessions):
            yield ImportedConversation(str(session["id"]), _session_entries(connection, all_messages, session, workspaces, home))
        for row in readable_rows(connection, [], orphans):
            yield ImportedConversation(str(row[0]), _session_entries(connection, all_messages, {"id": str(row[0])}, workspaces, home))


def _session_entries(connection: Connection, query: str, session: JsonObject, workspaces: dict[str, str], home: Path) -> Iterator[Entry]:
    tally, seen, last, resumed = Tally(), set[str](), None, ""
    for row in rows(connection, query, session["id"]):
        if isinstance(row, str):
            tally.lose("records")
            yield ImportedRecord(b"", problem=row)
            break
        value = row_object(row)
        resumed = next((str(value[name]) for name in _RESUME if value.get(name)), resumed)
        if value.get("deleted_at") is not None:
            continue
        message = message_of(value, row_bytes(row), last)
        if isinstance(message, ImportedRecord) or message.source_id in seen:
            problem = message.problem if isinstance(message, ImportedRecord) else f"message {message.source_id!r} exists twice"
            tally.lose("records")
            yield ImportedRecord(row_bytes(row), value, problem)
            continue
        seen.add(message.source_id)
        last = message.source_id
        tally.kept.update(things_in(message))
        yield message
    yield from _transcript(home, resumed, tally)
    yield _facts(session, workspaces, resumed, tally)


def _transcript(home: Path, session: str, tally: Tally) -> Iterator[Entry]:
    """Yield the lines of the session file written by the agent that was started. They contain data that is no longer in the database."""
    if not session or "/" in session or session.startswith("."):
        return
    for folder in (home / ".claude", home / "Agents" / ".claude", home.parent / ".claude"):
        file = next(files_below(folder / "projects", f"{session}.jsonl", depth=2), None)
        if file is None or file.name != f"{session}.jsonl":
            continue
        for line in json_lines(file):
            (tally.lost if line.problem else tally.kept)["records"] += 1
            yield ImportedRecord(line.raw, None, line.problem)
        return


def _facts(session: JsonObject, workspaces: dict[str, str], resumed: str, tally: Tally) -> ImportedFacts:
    title = str(session.get("name") or "")
    tally.kept["titles"] += bool(title)
    paths = json_value(session.get("accessible_paths"))
    first = str(paths[0]) if isinstance(paths, list) and paths else ""
    model, provider = model_of(session.get("model"))
    more: JsonObject = {name: session[name] for name in _KEPT if session.get(name)}
    if configuration := json_value(session.get("configuration")):
        more["configuration"] = configuration
    if resumed:
        more["agent_session_id"] = resumed
    return ImportedFacts(
        tally.fidelity(),
        title=title,
        directory=workspaces.get(str(session.get("workspace_id")), "") or first,
        model=f"{model}@{provider}" if provider else model,
        created_at=milliseconds(session.get("created_at")),
        updated_at=milliseconds(session.get("last_activity_at")) or milliseconds(session.get("updated_at")),
        metadata=more,
    )


def topics(connection: Connection) -> Iterator[ImportedConversation]:
    """Yield the chats that have not been deleted, oldest first."""
    for topic in _all(connection, "SELECT * FROM topic ORDER BY created_at, id"):
        yield ImportedConversation(str(topic["id"]), _topic_entries(connection, topic))


def _topic_entries(connection: Connection, topic: JsonObject) -> Iterator[Entry]:
    tally, found, records = Tally(), list[tuple[str, str | None, tuple[JsonObject, bytes]]](), list[ImportedRecord]()
    for row in rows(connection, "SELECT * FROM message WHERE topic_id = ? ORDER BY created_at, id", topic["id"]):
        if isinstance(row, str):
            records.append(ImportedRecord(b"", problem=row))
            break
        value = row_object(row)
        parent = value.get("parent_id")
        found.append((str(value.get("id")), str(parent) if parent is not None else None, (value, row_bytes(row))))
    ordered, cut = sort_tree(found)
    if cut:
        tally.approximated["branches"] += cut
    skipped: dict[str, str | None] = {}
    ids: set[str] = set()
    for id, parent, (value, raw) in ordered:
        parent = skipped.get(parent, parent) if parent is not None else None
        message = None if value.get("deleted_at") is not None else message_of(value, raw, parent)
        if not isinstance(message, ImportedMessage):  # its children are attached to its parent
            skipped[id] = parent
            records += [message] if message is not None else []
            continue
        ids.add(id)
        tally.kept.update(things_in(message))
        yield message
    for record in records:
        tally.lose("records")
        yield record
    head = str(topic.get("active_node_id"))
    tally.kept["titles"] += bool(topic.get("name"))
    yield ImportedFacts(
        tally.fidelity(),
        title=str(topic.get("name") or ""),
        head=head if head in ids else None,
        created_at=milliseconds(topic.get("created_at")),
        updated_at=milliseconds(topic.get("updated_at")),
        metadata={name: topic[name] for name in ("assistant_id", "prompt") if topic.get(name)},
    )


def _all(connection: Connection, query: str) -> list[JsonObject]:
    return [one for one in row_objects(connection, query) if one.get("deleted_at") is None]


DATABASES = ("Data/cherrystudio.sqlite", "Data/agents.db", "agents.db", "cherrystudio.sqlite", "data/agents.db")
"""Paths of databases below the program's folder, newest first.
Newer versions of the program migrate older databases but leave them in place.
"""
_FOLDERS = ("CherryStudio", "cherrystudio")
_OWN = (
    *({messages: {"session_id", "role", "created_at"}, table: {"agent_id"}} for table, messages, *_ in SESSIONS),
    {"message": {"topic_id", "parent_id", "data"}, "topic": {"active_node_id"}},
)


class Cherry:
    name = "cherry"
    version = 2
    stored_files: tuple[str, ...] = DATABASES
    suffix = ".sqlite"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, *_OWN) if head else any(True for _ in self.sources(path))

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        bases = [Path(environ.get("XDG_CONFIG_HOME") or home / ".config"), home / "Library" / "Application Support"]
        return [*(base / folder for base in bases for folder in _FOLDERS), home / ".cherrystudio"]

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the newest database. It also contains the data of all older databases."""
        for name in DATABASES:
            file = folder / name
            if (head := read_head(file)) and self.sniff(file, head):
                yield file
                return

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in self.sources(path) if path.is_dir() else [path]:
            with open_own(file, "Cherry Studio", *_OWN) as connection:
                there = tables(connection)
                yield from sessions(connection, there, file.parent)
                if {"topic", "message"} <= set(there):
                    yield from topics(connection)

    def configuration(self, path: Path) -> ForeignConfiguration:
        file = next(self.sources(path), None) if path.is_dir() else path
        return configuration(file) if file is not None else ForeignConfiguration()

    def write(self, exported: ExportedConversation) -> ExportFile:
        raise UsageError("moot can't write Cherry Studio databases.", fix="Export with `-f md` as Markdown, or with `-f ui` as JSON.")
