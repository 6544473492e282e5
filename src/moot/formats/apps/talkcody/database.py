"""Conversion of the tasks in TalkCody's database to conversations, with one record for each model call, tool call and output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from moot.formats.kit.answers import Turns
from moot.formats.kit.database import Connection, readable_rows, row_bytes, row_object, row_objects, rows, tables
from moot.formats.kit.fields import at, milliseconds, money, objects, text
from moot.formats.kit.files import read_inside
from moot.formats.kit.json import json_object, json_value
from moot.formats.kit.records import file_of, reasoning
from moot.formats.kit.records import tool_call as call_part
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedProject, ImportedRecord
from moot.types.message import Part, text_part


class Record(NamedTuple):
    """A row of the database or a message of a snapshot."""

    id: str
    role: str
    content: Json
    """Text, an object as JSON text (in tool rows of the database), or objects."""
    raw: bytes
    lead: bytes = b""
    at: int = 0
    thought: str = ""
    files: tuple[Part, ...] = ()
    metadata: JsonObject | None = None


class _Tool(NamedTuple):
    """A tool call or its output."""

    call: str
    name: str
    input: Json
    is_output: bool
    output: Json = None
    failed: bool = False


class Rows:
    """Converter of records to messages. An empty answer without a tool call was interrupted by a crash."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self._empty: Record | None = None
        self._thought = ""

    def take(self, record: Record) -> Iterator[Entry]:
        tools = [_tool(one) for one in _objects(record)] if record.role == "tool" else _envelope(record)
        if record.role == "tool" or tools:
            yield from self._tools(record, tools)
            return
        yield from self._settled()
        match record.role:
            case "user":
                yield from self.turns.say("user", record.id, record.raw, _said(record), at=record.at, metadata=record.metadata)
            case "system":
                yield from self.turns.say("system", record.id, record.raw, _said(record), at=record.at)
            case "assistant":
                parts = [*_thoughts(record.thought), *_said(record)]
                self._thought = record.thought
                if parts:
                    self.turns.step(record.id, record.raw, parts, lead=record.lead, at=record.at)
                else:
                    self._empty = record
            case _:
                yield from self.turns.end()
                yield self.turns.broken(record.raw, f"message {record.id!r} has the unknown role {record.role!r}", lead=record.lead)

    def end(self) -> Iterator[Entry]:
        yield from self._settled()
        yield from self.turns.end()

    def _settled(self) -> Iterator[Entry]:
        """Yield the last answer as an unreadable record if it is empty and was not followed by a tool call."""
        record, self._empty = self._empty, None
        if record is not None:
            yield self.turns.broken(
                record.raw, f"answer {record.id!r} is empty, probably because TalkCody crashed while streaming", lead=record.lead
            )

    def _tools(self, record: Record, tools: list[_Tool | None]) -> Iterator[Entry]:
        if not tools or None in tools:
            yield from self._settled()
            yield self.turns.broken(record.raw, f"tool message {record.id!r} is neither a call nor an output", lead=record.lead)
            return
        empty, self._empty = self._empty, None
        if empty is not None:
            self.turns.step(empty.id, empty.raw, [], lead=empty.lead, at=empty.at)
        self._calls(record, [tool for tool in tools if tool is not None])

    def _calls(self, record: Record, tools: list[_Tool]) -> None:
        thoughts = _thoughts(record.thought) if record.thought != self._thought else []
        self._thought = record.thought or self._thought
        calls = [*thoughts, *(call_part(tool.call, tool.name, tool.input) for tool in tools if not tool.is_output)]
        if calls and not self.turns.is_open():
            self.turns.step(record.id, record.raw, calls, lead=record.lead, at=record.at)
        elif calls:
            self.turns.add(record.id, record.raw, calls, lead=record.lead, at=record.at)
        raw = b"" if calls else record.raw
        for tool in tools:
            if tool.is_output:
                self.turns.output(
                    tool.call, record.id, raw, name=tool.name, lead=record.lead if raw else b"", output=tool.output, failed=tool.failed
                )
                raw = b""


def _said(record: Record) -> list[Part]:
    content = record.content
    if isinstance(content, str) and text(enveloped := _parsed(content, '{"content"'), "content", "type") == "text":
        content = at(enveloped, "content", "text")
    return [*([text_part(content)] if isinstance(content, str) and content else []), *record.files]


def _thoughts(thought: str) -> list[Part]:
    return [reasoning(thought)] if thought else []


def _objects(record: Record) -> Iterable[JsonObject]:
    if isinstance(record.content, str):
        parsed = _parsed(record.content, "{")
        return [parsed] if parsed is not None else []
    return objects(record.content)


def _tool(value: JsonObject) -> _Tool | None:
    call, name, kind = str(value.get("toolCallId") or ""), str(value.get("toolName") or ""), value.get("type")
    if kind == "tool-call":
        return _Tool(call, name, value.get("input"), is_output=False)
    if kind == "tool-result":
        return _result(value, call, name)
    result = at(value, "content", "result") if text(value, "content", "type") == "tool_result" else None
    return _result(result, str(result.get("toolCallId") or ""), str(result.get("toolName") or "")) if isinstance(result, dict) else None


def _result(value: JsonObject, call: str, name: str) -> _Tool:
    output = value.get("output")
    reason = output.get("error") if isinstance(output, dict) and output.get("success") is not True else None
    failed = value.get("status") == "error" or ("status" not in value and isinstance(reason, str))
    if not failed:
        return _Tool(call, name, value.get("input"), is_output=True, output=output)
    error = value.get("errorMessage") or reason or output
    return _Tool(call, name, value.get("input"), True, error if isinstance(error, str) else dumps(error).decode(), failed=True)


def _envelope(record: Record) -> list[_Tool | None]:
    """Return the tool calls that TalkCody's server stores in the row of the answer itself."""
    value = _parsed(record.content, '{"content"') if isinstance(record.content, str) and record.role == "assistant" else None
    calls = objects(value, "content", "calls") if text(value, "content", "type") == "tool_calls" else []
    return [_Tool(str(one.get("id") or ""), str(one.get("name") or ""), one.get("input"), is_output=False) for one in calls]


def _parsed(content: str, start: str) -> JsonObject | None:
    return json_object(content) or None if content.startswith(start) else None


_LARGEST = 64 << 20


def attached(row: JsonObject, home: Path) -> Part | None:
    """Return the attached file of a row, or None if it is missing.

    Only files in TalkCody's attachments folder are read, because the database may come from someone else and contain any path.
    """
    folder = home / "attachments"
    written = str(row.get("file_path") or "")
    name = PureWindowsPath(written).name  # handles both kinds of slashes
    data = read_inside(Path(written), inside=folder, limit=_LARGEST) or (
        read_inside(folder / name, inside=folder, limit=_LARGEST) if name else None
    )
    if data is None:
        return None
    kind = str(row.get("mime_type") or "application/octet-stream")
    return file_of(data, kind, str(row.get("filename") or name))


def _project(row: JsonObject) -> ImportedProject | None:
    """Return the project of a row. Return None for TalkCody's default project, unless it has a context or rules."""
    name, context, rules = (str(row.get(key) or "") for key in ("name", "context", "rules"))
    if not name or (row.get("id") == "default" and not context and not rules):
        return None
    described, root, at = str(row.get("description") or ""), str(row.get("root_path") or ""), milliseconds(row.get("created_at"))
    return ImportedProject(str(row["id"]), name, described, root, context, rules, at)


_CHECKPOINT = 64 << 20
_TOTALS = ("cost", "input_token", "output_token", "request_count", "context_usage")


def conversations(connection: Connection, home: Path) -> Iterator[ImportedConversation]:
    """Yield tasks, oldest first. Messages of missing tasks come last, under the task id that they contain."""
    there = frozenset(tables(connection))
    projects = {str(one["id"]): one for one in row_objects(connection, "SELECT * FROM projects")} if "projects" in there else {}
    for row in rows(connection, "SELECT * FROM conversations ORDER BY created_at, id"):
        if isinstance(row, str):
            break
        task = row_object(row)
        yield ImportedConversation(str(task["id"]), _Task(connection, home, there, task, projects).entries())
    orphans = "SELECT DISTINCT conversation_id FROM messages WHERE conversation_id NOT IN (SELECT id FROM conversations) ORDER BY 1"
    for id in [str(one["conversation_id"]) for one in row_objects(connection, orphans)]:
        yield ImportedConversation(id, _Task(connection, home, there, {"id": id}, projects).entries())


class _Task:
    """Reader for one task, which is a conversation in TalkCody."""

    def __init__(
        self, connection: Connection, home: Path, there: frozenset[str], task: JsonObject, projects: dict[str, JsonObject]
    ) -> None:
        self._connection = connection
        self._home = home
        self._tables = there
        self._task = task
        self._id = str(task["id"])
        self._project = projects.get(str(task.get("project_id")), {})
        self._turns = Turns()
        self._usage = self._of("api_usage_events", "SELECT * FROM api_usage_events WHERE conversation_id = ? ORDER BY created_at, rowid")
        self._agent = ""

    def entries(self) -> Iterator[Entry]:
        reader = Rows(self._turns)
        for row in rows(self._connection, "SELECT * FROM messages WHERE conversation_id = ? ORDER BY timestamp, rowid", self._id):
            if isinstance(row, str):
                yield from reader.end()
                yield self._turns.broken(b"", row)
                break
            value = row_object(row)
            if value.get("role") == "user":
                self._note(until=milliseconds(value.get("timestamp")))
            yield from reader.take(self._record(value, row_bytes(row)))
        self._note()
        yield from reader.end()
        yield from self._extra_records()
        yield self._facts()

    def _of(self, table: str, query: str) -> list[JsonObject]:
        return row_objects(self._connection, query, self._id) if table in self._tables else []

    def _record(self, row: JsonObject, raw: bytes) -> Record:
        files: list[Part] = []
        missing: list[Json] = []
        if "message_attachments" in self._tables:
            query = "SELECT * FROM message_attachments WHERE message_id = ? ORDER BY created_at, rowid"
            for one in readable_rows(self._connection, [], query, row.get("id")):
                raw += row_bytes(one)
                part = attached(about := row_object(one), self._home)
                if part is not None:
                    files.append(part)
                else:
                    missing.append({name: about.get(name) for name in ("filename", "file_path", "mime_type", "size", "type")})
                    self._turns.tally.lose("pictures" if str(about.get("mime_type")).startswith("image/") else "files")
        self._agent = self._agent or str(row.get("assistant_id") or "")
        return Record(
            str(row.get("id")),
            str(row.get("role")),
            row.get("content"),
            raw,
            at=milliseconds(row.get("timestamp")),
            thought=str(row.get("reasoning_content") or ""),
            files=tuple(files),
            metadata={"attachments": missing} if missing else None,
        )

    def _note(self, until: int = 0) -> None:
        """Add usage that was recorded before `until` to the open answer, because usage rows don't say which message they belong to."""
        while self._usage and (not until or milliseconds(self._usage[0].get("created_at")) < until):
            usage = self._usage.pop(0)
            if not self._turns.is_open():
                self._turns.tally.lose("usage")
                continue
            counts: JsonObject = {"input": usage.get("input_tokens"), "output": usage.get("output_tokens")}
            facts: JsonObject = {"model": usage.get("model"), "provider": usage.get("provider_id"), "usage": counts}
            self._turns.note({**facts, "cost": money(usage, "cost")})

    def _extra_records(self) -> Iterator[Entry]:
        """Yield the task's to-do list and its latest compacted history, from which TalkCody continues."""
        for row in self._of("todos", "SELECT * FROM todos WHERE conversation_id = ? ORDER BY created_at, rowid"):
            self._turns.tally.kept["records"] += 1
            yield ImportedRecord(dumps(row) + b"\n", {"todo": row})
        root = Path(str(self._project.get("root_path") or ""))
        if root.is_absolute() and "/" not in self._id:
            file = root / ".talkcody" / "context" / self._id / "compacted-messages.json"
            if (raw := read_inside(file, inside=root, limit=_CHECKPOINT)) is not None:
                self._turns.tally.kept["records"] += 1
                yield ImportedRecord(raw, {"checkpoint": file.name})

    def _facts(self) -> ImportedFacts:
        task, tally = self._task, self._turns.tally
        for word in ("usage", "costs", "models"):
            tally.weaken(word)
        tally.kept["titles"] += bool(task.get("title"))
        totals: JsonObject = {name: task[name] for name in _TOTALS if task.get(name)}
        more: JsonObject = {"totals": totals} if totals else {}
        if settings := json_value(task.get("settings")):
            more["settings"] = settings
        if self._project.get("name"):
            more["project"] = self._project["name"]
        return ImportedFacts(
            tally.fidelity(),
            project=_project(self._project),
            title=str(task.get("title") or ""),
            directory=str(self._project.get("root_path") or ""),
            agent=self._agent,
            created_at=milliseconds(task.get("created_at")),
            updated_at=milliseconds(task.get("updated_at")),
            metadata=more,
        )
