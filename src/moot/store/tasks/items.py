"""Tasks of projects, their comments and the history of their changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, LiteralString, cast

from moot.errors import Busy, LimitReached, NotFound, UsageError
from moot.plugins.registry import attribute
from moot.store.database.connection import Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.lookup import OWNED, match_cursor
from moot.store.rows import clean
from moot.store.search import text as words
from moot.store.tree.projects import default_project_id, ensure_project
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import DEFAULT_PROJECT, Page
from moot.types.ids import new_id
from moot.types.task import (
    CLOSED,
    COMMENT_CHARACTERS,
    DESCRIPTION_CHARACTERS,
    FIELDS,
    NAME_CHARACTERS,
    STATUSES,
    TAG_CHARACTERS,
    TAGS,
    TITLE_CHARACTERS,
    Author,
    Task,
    TaskChange,
    TaskComment,
    TaskEvent,
    TaskFilter,
    TaskRun,
    WatcherStore,
)
from moot.types.token import LOCAL_USER

MOST_TASKS = 10_000
"""Maximum number of tasks per project."""

MOST_COMMENTS = 2_000
"""Maximum number of comments per task."""

MOST_CREATED = 20
"""Maximum number of tasks that one run may create, so that agents which watch tasks can't multiply them."""

_WATCHERS = "moot.store.tasks.watchers:StoredWatchers"
"""Loaded by name, because that module imports this one."""

_KEPT = 1_000
"""Number of changes to keep for each task."""

TASK: LiteralString = (
    "id, project_id, title, description, status, tags, assignee, due, author, number, comments, created_at, updated_at, version, no"
)
CHANGE: LiteralString = "no, event, fields, before, status, author, by_run, watcher, depth, at"
COMMENT: LiteralString = "id, author, text, by_run, at, no"
_LIST: LiteralString = f"""
SELECT {TASK} FROM task
WHERE owner_id = coalesce(:owner, owner_id) AND (:project IS NULL OR project_id = :project)
    AND status IN (SELECT value FROM json_each(:statuses))
    AND NOT EXISTS (SELECT 1 FROM json_each(:tags) AS g WHERE g.value NOT IN (SELECT value FROM json_each(task.tags)))
    AND (:author = '' OR author = :author) AND (:assignee = '' OR assignee = :assignee) AND (:after = 0 OR updated_at > :after)
    AND (:today = '' OR due <> '' AND due < :today AND status NOT IN (SELECT value FROM json_each(:closed)))
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:words) AS w WHERE NOT EXISTS (
            SELECT 1 FROM json_each(w.value) AS p WHERE title || char(10) || description LIKE p.value ESCAPE '\\'
        )
    )
ORDER BY (SELECT key FROM json_each(:order) WHERE value = status), number DESC, no DESC LIMIT :most OFFSET :skipped
"""
_CURSOR = re.compile(r"t([0-9a-f]{1,8})")
_BELONGING = ("task_comment", "task_change", "task_cursor", "task_run")
"""Tables with rows that belong to a task and are deleted with it."""


class SqliteTasks:
    """The SQLite implementation of `Tasks`; an `owner` of None means the local user for new tasks, and all owners otherwise."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    @property
    def watchers(self) -> WatcherStore:
        return attribute(_WATCHERS)(self._writer, self._reader, self._owner)

    async def list(
        self, project: str | None, conditions: TaskFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Task]:
        skipped = 0 if cursor is None else int(match_cursor(_CURSOR, cursor)[1], 16)
        values = _conditions(conditions or TaskFilter()) | {"owner": self._owner, "most": limit + 1, "skipped": skipped}
        values["project"] = None if project is None else self._project(project)
        found = await self._reader.read(lambda connection: [task_of(row) for row in connection.execute(_LIST, values).fetchall()])
        return Page(found[:limit], f"t{skipped + limit:x}" if len(found) > limit else None)

    async def count(self, project: str) -> int:
        sql = f"SELECT count(*) FROM task WHERE project_id = ?{OWNED}"
        return await self._reader.row(sql, (self._project(project), self._owner), lambda row: row[0]) or 0

    async def get(self, project: str, task: str) -> Task:
        return await self._reader.read(lambda connection: self._found(connection, project, task))

    async def create(self, task: Task, by: Author, fields: JsonObject | None = None) -> Task:
        given = {name: _json_of(task, name) for name in FIELDS} | (fields or {})
        checked = replace(task, **_checked(given), author=clean(by.name))

        def work(transaction: Transaction) -> Task:
            owner = self._owner or LOCAL_USER
            known = transaction.row(f"SELECT {TASK} FROM task WHERE id = ? AND owner_id = ?", (task.id, owner))
            if known is not None:
                return task_of(known)
            project = ensure_project(transaction, task.project, owner)
            if transaction.row("SELECT count(*) FROM task WHERE project_id = ?", (project,))[0] >= MOST_TASKS:
                raise LimitReached(
                    f"The project already has {MOST_TASKS:,} tasks, the maximum.", fix="Remove some with `moot tasks remove`."
                )
            _check_run(transaction, by)
            (number,) = transaction.row("UPDATE project SET last_task = last_task + 1 WHERE id = ? RETURNING last_task", (project,))
            now = transaction.now_ms
            row = transaction.row(
                "INSERT INTO task (id, project_id, title, description, status, tags, assignee, due, author, number, created_at, updated_at,"
                f" version, owner_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?) RETURNING {TASK}",
                (task.id, project, *_values(checked), checked.author, number, task.created_at or now, now, owner),
            )
            stored = task_of(row)
            _record(transaction, stored, "created", (), stored, by, now)
            return stored

        return await self._writer.write(work, sync=True)

    async def update(self, project: str, task: str, changes: JsonObject, by: Author, *, version: int | None = None) -> Task:
        given = _checked(changes)

        def work(transaction: Transaction) -> Task:
            found = self._found(transaction, project, task)
            _check_version(found, version)
            changed = replace(found, **given)
            fields = tuple(name for name in FIELDS if getattr(changed, name) != getattr(found, name))
            if not fields:
                return found
            now = transaction.now_ms
            row = transaction.row(
                "UPDATE task SET title = ?, description = ?, status = ?, tags = ?, assignee = ?, due = ?, updated_at = ?,"
                f" version = version + 1 WHERE no = ? RETURNING {TASK}",
                (*_values(changed), now, found.no),
            )
            stored = task_of(row)
            _record(transaction, found, "status" if "status" in fields else "updated", fields, stored, by, now)
            return stored

        return await self._writer.write(work, sync=True)

    async def comment(self, project: str, task: str, text: str, by: Author, *, id: str = "") -> TaskComment:
        content, own_id = _text("comment", text, COMMENT_CHARACTERS), id or new_id()
        if not content.strip():
            raise UsageError("The comment is empty.")

        def work(transaction: Transaction) -> TaskComment:
            found = self._found(transaction, project, task)
            known = transaction.row(f"SELECT {COMMENT} FROM task_comment WHERE id = ? AND task = ?", (own_id, found.no))
            if known is not None:
                return TaskComment(*known)
            if found.comments >= MOST_COMMENTS:
                raise LimitReached(f"The task already has {MOST_COMMENTS:,} comments, the maximum.", fix="Continue in a new task.")
            now = transaction.now_ms
            row = transaction.row(
                f"INSERT INTO task_comment (id, task, author, by_run, text, at) VALUES (?, ?, ?, ?, ?, ?) RETURNING {COMMENT}",
                (own_id, found.no, clean(by.name), by.run, content, now),
            )
            transaction.execute(
                "UPDATE task SET comments = comments + 1, updated_at = ?, version = version + 1 WHERE no = ?", (now, found.no)
            )
            _record(transaction, found, "commented", (), found, by, now)
            return TaskComment(*row)

        return await self._writer.write(work, sync=True)

    async def comments(self, project: str, task: str, *, limit: int = 50, cursor: str | None = None) -> Page[TaskComment]:
        before = 1 << 62 if cursor is None else int(match_cursor(_CURSOR, cursor)[1], 16)

        def work(queries: Queries) -> Page[TaskComment]:
            no = self._found(queries, project, task).no
            sql = f"SELECT {COMMENT} FROM task_comment WHERE task = ? AND no < ? ORDER BY no DESC LIMIT ?"
            found = [TaskComment(*row) for row in queries.execute(sql, (no, before, limit + 1)).fetchall()]
            return Page(found[:limit], f"t{found[limit - 1].no:x}" if len(found) > limit else None)

        return await self._reader.read(work)

    async def history(self, project: str, task: str, *, limit: int = 50) -> tuple[list[TaskChange], list[TaskRun]]:
        def work(queries: Queries) -> tuple[list[TaskChange], list[TaskRun]]:
            no = self._found(queries, project, task).no
            changes = queries.execute(f"SELECT {CHANGE} FROM task_change WHERE task = ? ORDER BY no DESC LIMIT ?", (no, limit)).fetchall()
            runs = queries.execute(
                "SELECT t.watcher, t.at, t.reason, t.run, t.conversation, r.status FROM task_run AS t LEFT JOIN run AS r ON r.id = t.run"
                " WHERE t.task = ? ORDER BY t.no DESC LIMIT ?",
                (no, limit),
            ).fetchall()
            return [*map(change_of, changes)], [TaskRun(*row) for row in runs]

        return await self._reader.read(work)

    async def remove(self, project: str, task: str, *, version: int | None = None) -> Task:
        def work(transaction: Transaction) -> Task:
            found = self._found(transaction, project, task)
            _check_version(found, version)
            remove_tasks(transaction, "no = ?", found.no)
            return found

        return await self._writer.write(work, sync=True)

    def _project(self, id: str) -> str:
        return default_project_id(self._owner or LOCAL_USER) if id == DEFAULT_PROJECT else id

    def _found(self, queries: Queries, project: str, task: str) -> Task:
        number = task.removeprefix("#")
        is_number = number.isascii() and number.isdecimal() and len(number) < 10
        where = "number = ?" if is_number else "id = ?"
        sql = f"SELECT {TASK} FROM task WHERE project_id = ? AND {where}{OWNED}"
        row: Any = queries.execute(sql, (self._project(project), int(number) if is_number else task, self._owner)).fetchone()
        if row is None:
            raise NotFound(f"The project has no task {task!r}.", fix="See `moot tasks list`.")
        return task_of(row)


def remove_tasks(transaction: Transaction, where: LiteralString, value: object) -> None:
    """Delete tasks with everything that belongs to them."""
    for table in _BELONGING:
        transaction.execute(f"DELETE FROM {table} WHERE task IN (SELECT no FROM task WHERE {where})", (value,))
    transaction.execute(f"DELETE FROM task WHERE {where}", (value,))


def task_of(row: Any) -> Task:
    """Convert a row with the columns `TASK`."""
    id, project, title, description, status, tags, *rest = row
    return Task(id, project, title, description, status, tuple(json.loads(tags)), *rest)


def change_of(row: Any) -> TaskChange:
    """Convert a row with the columns `CHANGE`."""
    no, event, fields, *rest = row
    return TaskChange(no, event, tuple(json.loads(fields)), *rest)


def _conditions(wanted: TaskFilter) -> dict[str, object]:
    """Return the parameters of the query `_LIST` for these conditions."""
    return {
        "statuses": json.dumps(list(wanted.statuses) or [status for status in STATUSES if status != "archived"]),
        "tags": json.dumps(list(wanted.tags)),
        "author": wanted.author,
        "assignee": wanted.assignee,
        "after": wanted.updated_after,
        "today": wanted.overdue_on,
        "closed": json.dumps(sorted(CLOSED)),
        "words": json.dumps([words.like_patterns(word) for word in wanted.query.split()]),
        "order": json.dumps(STATUSES),
    }


def _check_version(found: Task, version: int | None) -> None:
    if version is not None and found.version != version:
        raise Busy(f"The task #{found.number} has changed since you read it.", fix="Read it again.")


def _check_run(transaction: Transaction, by: Author) -> None:
    sql = "SELECT count(*) FROM task_change WHERE by_run = ? AND event = 'created'"
    if by.run is not None and transaction.row(sql, (by.run,))[0] >= MOST_CREATED:
        raise LimitReached(f"A run can create at most {MOST_CREATED} tasks.")


def _record(transaction: Transaction, before: Task, event: TaskEvent, fields: Sequence[str], after: Task, by: Author, now: int) -> None:
    transaction.execute(
        "INSERT INTO task_change (task, event, fields, before, status, author, by_run, watcher, depth, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(after.no, event, json.dumps(list(fields)), before.status, after.status, clean(by.name), by.run, by.watcher, by.depth),
            now,
        ),
    )
    if event != "created":
        oldest = "SELECT no FROM task_change WHERE task = ?1 ORDER BY no DESC LIMIT 1 OFFSET ?2"
        transaction.execute(f"DELETE FROM task_change WHERE task = ?1 AND no <= ({oldest})", (after.no, _KEPT))


def _values(task: Task) -> tuple[str, ...]:
    tags = json.dumps(list(task.tags), ensure_ascii=False)
    return task.title, task.description, task.status, tags, task.assignee, task.due


def _json_of(task: Task, field: str) -> Json:
    value: Json = getattr(task, field) if field != "tags" else list(task.tags)
    return value


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _checked(changes: JsonObject) -> dict[str, Any]:
    """Return the fields with cleaned values. Raise UsageError for an unknown field or an invalid value."""
    if unknown := next((name for name in changes if name not in FIELDS), None):
        raise UsageError(f"A task has no field {unknown!r}.", fix=f"Available fields: {', '.join(FIELDS)}.")
    return {name: _CHECKS[name](name, value) for name, value in changes.items()}


def _text(name: str, value: Json, most: int) -> str:
    if not isinstance(value, str):
        raise UsageError(f"The {name} of a task must be a string.")
    if len(value) > most:
        raise UsageError(f"The {name} of a task can have at most {most:,} characters, got {len(value):,}.")
    return clean(value)


def _title(name: str, value: Json) -> str:
    title = " ".join(_text(name, value, TITLE_CHARACTERS).split())
    if not title:
        raise UsageError("The title of the task is empty.")
    return title


def _status(_: str, value: Json) -> str:
    if value not in STATUSES:
        raise UsageError(f"Unknown status {value!r}.", fix=f"Use one of: {', '.join(STATUSES)}.")
    return cast("str", value)


def _tags(_: str, value: Json) -> tuple[str, ...]:
    tags = [" ".join(_text("tag", tag, TAG_CHARACTERS).split()) for tag in value] if isinstance(value, list) else []
    if not isinstance(value, list) or len(value) > TAGS or not all(tags):
        raise UsageError(f"The tags of a task must be a list of at most {TAGS} non-empty strings.")
    return tuple(dict.fromkeys(tags))


def _due(_: str, value: Json) -> str:
    try:
        if isinstance(value, str):
            return value and date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    raise UsageError(f"Invalid due date {value!r}.", fix="Use a date such as 2026-12-24, or an empty string for no due date.")


def _description(name: str, value: Json) -> str:
    return _text(name, value, DESCRIPTION_CHARACTERS)


def _assignee(name: str, value: Json) -> str:
    return " ".join(_text(name, value, NAME_CHARACTERS).split())


_CHECKS: Mapping[str, Callable[[str, Json], object]] = {
    "title": _title,
    "description": _description,
    "status": _status,
    "tags": _tags,
    "assignee": _assignee,
    "due": _due,
}
