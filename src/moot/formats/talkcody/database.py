"""Tasks of TalkCody's database as conversations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.formats._source.beside import beside
from moot.formats._source.database import Connection, object_of, raw_of, rows, tables
from moot.formats._source.fields import milliseconds
from moot.formats._source.pieces import value_in
from moot.formats._source.turns import Turns
from moot.formats.talkcody.attachments import attached
from moot.formats.talkcody.rows import Record, Rows
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.part import Part

__all__ = ["conversations"]

_CHECKPOINT = 64 << 20
_TOTALS = ("cost", "input_token", "output_token", "request_count", "context_usage")


def conversations(connection: Connection, home: Path) -> Iterator[ImportedConversation]:
    """Yield tasks, oldest first. Messages of missing tasks come last, with the task id that they name."""
    there = frozenset(tables(connection))
    projects = {str(one["id"]): one for one in _all(connection, "SELECT * FROM projects")} if "projects" in there else {}
    for row in rows(connection, "SELECT * FROM conversations ORDER BY created_at, id"):
        if isinstance(row, str):
            break
        task = object_of(row)
        yield ImportedConversation(str(task["id"]), _Task(connection, home, there, task, projects).entries())
    orphans = "SELECT DISTINCT conversation_id FROM messages WHERE conversation_id NOT IN (SELECT id FROM conversations) ORDER BY 1"
    for id in [str(one["conversation_id"]) for one in _all(connection, orphans)]:
        yield ImportedConversation(id, _Task(connection, home, there, {"id": id}, projects).entries())


def _all(connection: Connection, query: str, *values: str) -> list[JsonObject]:
    return [object_of(row) for row in rows(connection, query, *values) if not isinstance(row, str)]


class _Task:
    """A reader of one task."""

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
            value = object_of(row)
            if value.get("role") == "user":
                self._note(until=milliseconds(value.get("timestamp")))
            yield from reader.take(self._record(value, raw_of(row)))
        self._note()
        yield from reader.end()
        yield from self._extra_records()
        yield self._facts()

    def _of(self, table: str, query: str) -> list[JsonObject]:
        return _all(self._connection, query, self._id) if table in self._tables else []

    def _record(self, row: JsonObject, raw: bytes) -> Record:
        files: list[Part] = []
        missing: list[Json] = []
        if "message_attachments" in self._tables:
            query = "SELECT * FROM message_attachments WHERE message_id = ? ORDER BY created_at, rowid"
            for one in rows(self._connection, query, row.get("id")):
                if isinstance(one, str):
                    continue
                raw += raw_of(one)
                part = attached(about := object_of(one), self._home)
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
        """Assign usage recorded before `until` to the open answer. Usage rows and messages don't reference each other."""
        while self._usage and (not until or milliseconds(self._usage[0].get("created_at")) < until):
            usage = self._usage.pop(0)
            if not self._turns.is_open():
                self._turns.tally.lose("usage")
                continue
            counts: JsonObject = {"input": usage.get("input_tokens"), "output": usage.get("output_tokens")}
            cost = usage.get("cost")
            facts: JsonObject = {"model": usage.get("model"), "provider": usage.get("provider_id"), "usage": counts}
            self._turns.note({**facts, "cost": round(cost * 1e9) if isinstance(cost, int | float) else None})

    def _extra_records(self) -> Iterator[Entry]:
        """Yield the task's to-do list and its latest compacted history, which TalkCody continues from."""
        for row in self._of("todos", "SELECT * FROM todos WHERE conversation_id = ? ORDER BY created_at, rowid"):
            yield self._kept(row, {"todo": row})
        root = Path(str(self._project.get("root_path") or ""))
        if root.is_absolute() and "/" not in self._id:
            file = root / ".talkcody" / "context" / self._id / "compacted-messages.json"
            if (raw := beside(file, inside=root, limit=_CHECKPOINT)) is not None:
                self._turns.tally.kept["records"] += 1
                yield ImportedRecord(raw, {"checkpoint": file.name})

    def _kept(self, row: JsonObject, body: JsonObject) -> ImportedRecord:
        self._turns.tally.kept["records"] += 1
        return ImportedRecord(dumps(row) + b"\n", body)

    def _facts(self) -> ImportedFacts:
        task, tally = self._task, self._turns.tally
        for word in ("usage", "costs", "models"):
            tally.weaken(word)
        tally.kept["titles"] += bool(task.get("title"))
        tally.kept = +tally.kept
        totals: JsonObject = {name: task[name] for name in _TOTALS if task.get(name)}
        more: JsonObject = {"totals": totals} if totals else {}
        if settings := value_in(task.get("settings")):
            more["settings"] = settings
        if self._project.get("name"):
            more["project"] = self._project["name"]
        return ImportedFacts(
            tally.fidelity(),
            title=str(task.get("title") or ""),
            directory=str(self._project.get("root_path") or ""),
            agent=self._agent,
            created_at=milliseconds(task.get("created_at")),
            updated_at=milliseconds(task.get("updated_at")),
            metadata=more,
        )
