"""The task changes that each watcher has handled, and the pending ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString

from moot.errors import Busy, NotFound
from moot.store.database.connection import Queries
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.tasks.items import CHANGE, COMMENT, TASK, change_of, task_of
from moot.types.task import DEEPEST, ChangedTask, Pending, PendingTask, TaskComment, TaskDue, TaskWatcher
from moot.types.token import LOCAL_USER

SHOWN = 20
"""Maximum number of comments and of changes in a prompt."""

_MANY = 500
_KEPT = 200
"""Number of runs to keep for each watcher and task."""

_OPEN: LiteralString = "('queued', 'running', 'waiting', 'interrupted')"
_BUSY: LiteralString = (
    "SELECT count(*) FROM task_cursor AS k JOIN run AS r ON r.id = k.last_run WHERE k.watcher = ?"
    " AND (r.status IN ('queued', 'running', 'interrupted') OR r.status = 'waiting' AND r.awaits IS NOT 'person')"
)
_IS_OPEN: LiteralString = (
    f"SELECT 1 FROM task_cursor AS k JOIN run AS r ON r.id = k.last_run WHERE k.watcher = ? AND k.task = ? AND r.status IN {_OPEN}"
)
_PENDING: LiteralString = f"""
SELECT t.no, min(c.no), min(c.at), max(c.at), min(c.depth),
    EXISTS (SELECT 1 FROM run AS r WHERE r.id = k.last_run AND r.status IN {_OPEN})
FROM task_watcher AS w JOIN task_change AS c ON c.no > w.since JOIN task AS t ON t.no = c.task JOIN project AS p ON p.id = t.project_id
LEFT JOIN task_cursor AS k ON k.watcher = w.name AND k.task = c.task
WHERE w.owner_id = :owner AND w.name = :watcher AND t.owner_id = :owner AND c.no > coalesce(k.through, 0) AND c.watcher <> :watcher
    AND c.depth < :deepest AND c.event IN (SELECT value FROM json_each(:events))
    AND (:statuses = '[]' OR t.status IN (SELECT value FROM json_each(:statuses)))
    AND (:project = '' OR p.id = :project OR p.name = :project) AND (:assignee = '' OR t.assignee = :assignee)
    AND (:tags = '[]' OR EXISTS (SELECT 1 FROM json_each(t.tags) AS g WHERE g.value IN (SELECT value FROM json_each(:tags))))
GROUP BY t.no ORDER BY min(c.no) LIMIT :many
"""


def check(transaction: Transaction, due: TaskDue) -> None:
    """Raise Busy if the changes have already been handled or an earlier run has to end before, NotFound if the task was deleted."""
    if transaction.row("SELECT 1 FROM task WHERE no = ?", (due.task,)) is None:
        raise NotFound("The task was deleted.")
    name = (due.watcher, due.task)
    known: Any = transaction.row("SELECT through FROM task_cursor WHERE watcher = ? AND task = ?", name)
    if known is not None and known[0] >= due.through:
        raise Busy("These changes to the task have already been handled.")
    if transaction.row(_IS_OPEN, name) is not None:
        raise Busy(f"The last run of the watcher {due.watcher!r} for this task has not ended.")
    if transaction.row(_BUSY, (due.watcher,))[0] >= due.max_runs:
        raise Busy(f"The watcher {due.watcher!r} has reached its maximum number of runs.")


def insert(transaction: Transaction, due: TaskDue, reason: str = "", *, run: str | None = None, conversation: str | None = None) -> None:
    """Record that the changes are handled."""
    transaction.execute(
        "INSERT INTO task_cursor (watcher, task, through, last_run) VALUES (?, ?, ?, ?) ON CONFLICT (watcher, task) DO UPDATE"
        " SET through = max(task_cursor.through, excluded.through), last_run = excluded.last_run",
        (due.watcher, due.task, due.through, run),
    )
    transaction.execute(
        "INSERT INTO task_run (watcher, task, at, reason, run, conversation) VALUES (?, ?, ?, ?, ?, ?)",
        (due.watcher, due.task, transaction.now_ms, reason, run, conversation),
    )
    oldest = "SELECT no FROM task_run WHERE watcher = ?1 AND task = ?2 ORDER BY no DESC LIMIT 1 OFFSET ?3"
    transaction.execute(f"DELETE FROM task_run WHERE watcher = ?1 AND task = ?2 AND no <= ({oldest})", (due.watcher, due.task, _KEPT))


class StoredWatchers:
    """The SQLite implementation of `WatcherStore`; an `owner` of None means the local user."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner or LOCAL_USER

    async def version(self) -> int:
        return await self._reader.read(_last_change)

    async def ensure(self, names: Sequence[str]) -> None:
        known = await self._reader.rows("SELECT name FROM task_watcher WHERE owner_id = ?", (self._owner,), lambda row: row[0])
        if sorted(known) == sorted(names):
            return

        def work(transaction: Transaction) -> None:
            transaction.execute(
                "DELETE FROM task_watcher WHERE owner_id = ? AND name NOT IN (SELECT value FROM json_each(?))",
                (self._owner, json.dumps(list(names))),
            )
            rows = [(self._owner, name, _last_change(transaction)) for name in names]
            transaction.many("INSERT OR IGNORE INTO task_watcher (owner_id, name, since) VALUES (?, ?, ?)", rows)

        await self._writer.write(work, sync=True)

    async def pending(self, watcher: TaskWatcher) -> Pending:
        values = {
            "owner": self._owner,
            "watcher": watcher.name,
            "deepest": DEEPEST,
            "many": _MANY,
            **{name: json.dumps(sorted(getattr(watcher, name))) for name in ("events", "statuses", "tags")},
            "project": watcher.project,
            "assignee": watcher.assignee,
        }

        def work(queries: Queries) -> Pending:
            rows: list[Any] = queries.execute(_PENDING, values).fetchall()
            last = _last_change(queries)
            if not rows:
                return Pending(last=last)
            tasks = [PendingTask(*row[:5], is_open=bool(row[5]), recent=_recent(queries, watcher.name, row[0])) for row in rows]
            return Pending(tasks, last, queries.execute(_BUSY, (watcher.name,)).fetchone()[0])

        return await self._reader.read(work)

    async def advance(self, watcher: str, through: int) -> None:
        sql = "UPDATE task_watcher SET since = max(since, ?) WHERE owner_id = ? AND name = ?"
        await self._writer.write(lambda transaction: transaction.execute(sql, (through, self._owner, watcher)))

    async def changed(self, watcher: str, task: int) -> ChangedTask:
        def work(queries: Queries) -> ChangedTask:
            row = queries.execute(f"SELECT {TASK} FROM task WHERE no = ?", (task,)).fetchone()
            if row is None:
                raise NotFound("The task was deleted.")
            through = (
                "max(coalesce((SELECT through FROM task_cursor WHERE watcher = ?2 AND task = ?1), 0),"
                " coalesce((SELECT since FROM task_watcher WHERE owner_id = ?4 AND name = ?2), 0))"
            )
            changes = queries.execute(
                f"SELECT {CHANGE} FROM task_change WHERE task = ?1 AND no > {through} AND watcher <> ?2 ORDER BY no DESC LIMIT ?3",
                (task, watcher, SHOWN, self._owner),
            ).fetchall()
            comments = queries.execute(
                f"SELECT {COMMENT} FROM task_comment WHERE task = ? ORDER BY no DESC LIMIT ?", (task, SHOWN)
            ).fetchall()
            (last,) = queries.execute("SELECT max(no) FROM task_change WHERE task = ?", (task,)).fetchone()
            return ChangedTask(
                task_of(row), last, [*map(change_of, reversed(changes))], [TaskComment(*comment) for comment in reversed(comments)]
            )

        return await self._reader.read(work)

    async def give_up(self, due: TaskDue, reason: str) -> None:
        def work(transaction: Transaction) -> None:
            with suppress(Busy, NotFound):  # another process was faster, or the task was deleted
                check(transaction, due)
                insert(transaction, due, reason)

        await self._writer.write(work, sync=True)


def _last_change(queries: Queries) -> int:
    # not max(no), because the newest changes may have been deleted with their task
    row: Any = queries.execute("SELECT seq FROM sqlite_sequence WHERE name = 'task_change'").fetchone()
    return 0 if row is None else row[0]


def _recent(queries: Queries, watcher: str, task: int) -> list[int]:
    sql = "SELECT at FROM task_run WHERE watcher = ? AND task = ? ORDER BY no DESC LIMIT 50"
    return [at for (at,) in queries.execute(sql, (watcher, task)).fetchall()]
