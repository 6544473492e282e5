"""Cron jobs and the history of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, LiteralString, cast

from moot.errors import Busy, LimitReached, NotFound
from moot.store.channels import add_answer
from moot.store.database.reader import Reader
from moot.store.database.transaction import Transaction
from moot.store.database.writer import Writer
from moot.store.rows import parse_stored, parse_stored_object
from moot.types.canonical import JsonObject, dumps
from moot.types.cron import STOPPED, Due, Job, JobRun, JobState, RecordStatus
from moot.types.token import LOCAL_USER
from moot.types.webhook import JobAnswer

MOST_JOBS = 2_000
"""Maximum number of jobs of one owner."""

_KEPT = 10_000
"""Number of history entries to keep for each job."""

_OPEN: LiteralString = "('queued', 'running', 'waiting', 'interrupted')"
_STATE: LiteralString = "owner_id, name, settings, created_at, seen_at, paused_at, schedule"
_RUN: LiteralString = (
    "SELECT c.no, c.owner_id, c.job, c.at, c.missed, c.attempt, c.status, c.reason, c.run, r.status, k.id, r.cost, r.error, c.settled_at,"
    " json_extract(CAST(m.metadata AS TEXT), '$.finish_reason') FROM cron_run AS c LEFT JOIN run AS r ON r.id = c.run"
    " LEFT JOIN conversation AS k ON k.id = c.conversation LEFT JOIN message AS m ON m.id = r.message"
)
_OWNED: LiteralString = "owner_id = coalesce(?, owner_id)"


def check(transaction: Transaction, due: Due) -> None:
    """Raise Busy if this scheduled time is already recorded, if a run of the job has not ended, or if the job was paused or removed."""
    name = (due.owner, due.job)
    if due.by_clock:
        state: Any = transaction.row("SELECT paused_at FROM cron_job WHERE owner_id = ? AND name = ?", name)
        if state is None or state[0] is not None:
            raise Busy(f"The job {due.job!r} was {'removed' if state is None else 'paused'}.")
    known: Any = transaction.row("SELECT attempt FROM cron_run WHERE owner_id = ? AND job = ? AND at = ?", (*name, due.at))
    if known is not None and known[0] >= due.attempt:
        raise Busy(f"The job {due.job!r} has already run for this time.")
    unsettled = "SELECT 1 FROM cron_run AS c JOIN run AS r ON r.id = c.run WHERE c.settled_at IS NULL AND c.owner_id = ? AND c.job = ?"
    if transaction.row(f"{unsettled} AND r.status IN {_OPEN} LIMIT 1", name) is not None:
        raise Busy(f"The last run of the job {due.job!r} has not ended.", fix="Stop it with `moot chat stop`, or wait until it ends.")


def insert(
    transaction: Transaction, due: Due, status: RecordStatus, reason: str = "", *, run: str | None = None, conversation: str | None = None
) -> bool:
    """Record a scheduled time, or another attempt at it. Return False if it is already recorded."""
    now = transaction.now_ms
    inserted = transaction.execute(
        "INSERT INTO cron_run (owner_id, job, at, status, reason, missed, attempt, run, conversation, settled_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner_id, job, at) DO UPDATE"
        " SET run = excluded.run, attempt = excluded.attempt, settled_at = NULL WHERE excluded.attempt > cron_run.attempt",
        (
            *(due.owner, due.job, due.at, status, reason, due.missed, due.attempt, run, conversation),
            None if status == "started" else now,
        ),
    )
    if inserted.rowcount != 1:
        return False
    name = (due.owner, due.job)
    if status == "running":
        sql = "UPDATE cron_run SET status = 'failed', reason = ? WHERE owner_id = ? AND job = ? AND status = 'running' AND at <> ?"
        transaction.execute(sql, (STOPPED, *name, due.at))
    transaction.execute("UPDATE cron_job SET seen_at = ? WHERE owner_id = ? AND name = ? AND ? = 1", (due.at, *name, due.attempt))
    oldest = "SELECT at FROM cron_run WHERE owner_id = ? AND job = ? ORDER BY at DESC LIMIT 1 OFFSET ?"
    transaction.execute(f"DELETE FROM cron_run WHERE owner_id = ? AND job = ? AND at <= ({oldest})", (*name, *name, _KEPT))
    return True


class StoredJobs:
    """The SQLite implementation of `JobStore`; an `owner` of None means all owners."""

    def __init__(self, writer: Writer, reader: Reader, owner: str | None = None) -> None:
        self._writer = writer
        self._reader = reader
        self._owner = owner

    async def list(self) -> list[JobState]:
        return await self._reader.rows(f"SELECT {_STATE} FROM cron_job WHERE {_OWNED} ORDER BY name, owner_id", (self._owner,), _state)

    async def version(self) -> tuple[int, int]:
        found = await self._reader.row("SELECT count(*), coalesce(sum(changed_at), 0) FROM cron_job", (), lambda row: (row[0], row[1]))
        return found or (0, 0)

    async def add(self, job: Job) -> JobState:
        self._check(job.owner)

        def work(transaction: Transaction) -> JobState:
            if transaction.row("SELECT count(*) FROM cron_job WHERE owner_id = ?", (job.owner,))[0] >= MOST_JOBS:
                raise LimitReached(f"There are already {MOST_JOBS:,} jobs.", fix="Remove some with `moot cron remove`.")
            if not _insert_job(transaction, job.owner, job.name, dumps(_to_json(job))):
                raise Busy(f"A job named {job.name!r} already exists.", fix=f"Remove it with `moot cron remove {job.name}`.")
            return JobState(job, now := transaction.now_ms, now)

        return await self._writer.write(work, sync=True)

    async def ensure(self, schedules: Mapping[str, str]) -> None:
        self._check(LOCAL_USER)
        changed = "owner_id = ? AND name = ? AND settings IS NULL AND schedule <> ?"
        gone = "owner_id = ? AND settings IS NULL AND name NOT IN (SELECT value FROM json_each(?))"

        def work(transaction: Transaction) -> None:
            now = transaction.now_ms
            for name, schedule in schedules.items():
                _ensure(transaction, LOCAL_USER, name)
                transaction.execute(
                    f"UPDATE cron_job SET schedule = ?, seen_at = ?, changed_at = ? WHERE {changed}",
                    (schedule, now, transaction.now, LOCAL_USER, name, schedule),
                )
            names = dumps(list(schedules)).decode()
            transaction.execute(f"UPDATE cron_job SET schedule = '' WHERE {gone}", (LOCAL_USER, names))

        await self._writer.write(work)

    async def pause(self, owner: str, name: str, *, paused: bool) -> None:
        self._check(owner)

        def work(transaction: Transaction) -> None:
            _ensure(transaction, owner, name)
            now = transaction.now_ms
            was: Any = transaction.row("SELECT paused_at FROM cron_job WHERE owner_id = ? AND name = ?", (owner, name))
            if (was[0] is not None) != paused:
                transaction.execute(
                    "UPDATE cron_job SET paused_at = ?, seen_at = ?, changed_at = ? WHERE owner_id = ? AND name = ?",
                    (now if paused else None, now, transaction.now, owner, name),
                )

        await self._writer.write(work, sync=True)

    async def remove(self, owner: str, name: str) -> None:
        self._check(owner)

        def work(transaction: Transaction) -> None:
            sql = "DELETE FROM cron_job WHERE owner_id = ? AND name = ? AND settings IS NOT NULL"
            if not transaction.execute(sql, (owner, name)).rowcount:
                raise NotFound(f"No job is named {name!r}.", fix="See `moot cron list`.")

        await self._writer.write(work, sync=True)

    async def record(self, due: Due, status: RecordStatus, reason: str) -> bool:
        self._check(due.owner)
        return await self._writer.write(lambda transaction: insert(transaction, due, status, reason), sync=True)

    async def history(self, name: str | None = None, *, at: int | None = None, limit: int = 50) -> list[JobRun]:
        where = "c.owner_id = coalesce(?, c.owner_id) AND c.job = coalesce(?, c.job) AND c.at = coalesce(?, c.at)"
        values = (self._owner, name, at, limit)
        return await self._reader.rows(f"{_RUN} WHERE {where} ORDER BY c.at DESC, c.no DESC LIMIT ?", values, _job_run)

    def _check(self, owner: str) -> None:
        if self._owner not in (None, owner):
            raise NotFound("No job has this name.", fix="See `moot cron list`.")

    async def latest(self) -> list[JobRun]:
        newest = "SELECT owner_id, job, max(at) FROM cron_run WHERE owner_id = coalesce(?, owner_id) GROUP BY owner_id, job"
        return await self._reader.rows(f"{_RUN} WHERE (c.owner_id, c.job, c.at) IN ({newest})", (self._owner,), _job_run)

    async def ended(self) -> list[JobRun]:
        # a purged run counts as ended
        over = f"c.settled_at IS NULL AND (r.status IS NULL OR r.status NOT IN {_OPEN})"
        sql = f"{_RUN} WHERE {over} AND c.owner_id = coalesce(?, c.owner_id) ORDER BY c.no"
        return await self._reader.rows(sql, (self._owner,), _job_run)

    async def settle(self, no: int, reason: str = "", answer: JobAnswer | None = None) -> bool:
        sql = f"UPDATE cron_run SET settled_at = ?, reason = ? WHERE no = ? AND settled_at IS NULL AND {_OWNED} RETURNING run, conversation"

        def work(transaction: Transaction) -> bool:
            settled: Any = transaction.row(sql, (transaction.now_ms, reason, no, self._owner))
            if settled is not None and answer is not None:
                add_answer(transaction, settled[0], settled[1], answer)
            return settled is not None

        return await self._writer.write(work, sync=True)

    async def note(self, no: int, reason: str, *, status: RecordStatus | None = None, answer: JobAnswer | None = None) -> None:
        sql = f"UPDATE cron_run SET status = coalesce(?, status), reason = ? WHERE no = ? AND {_OWNED} RETURNING run, conversation"

        def work(transaction: Transaction) -> None:
            noted: Any = transaction.row(sql, (status, reason, no, self._owner))
            if noted is not None and answer is not None:
                add_answer(transaction, noted[0], noted[1], answer)

        await self._writer.write(work, sync=status is not None)


def _ensure(transaction: Transaction, owner: str, name: str) -> None:
    if transaction.row("SELECT 1 FROM cron_job WHERE owner_id = ? AND name = ?", (owner, name)) is None:
        _insert_job(transaction, owner, name, None)


def _insert_job(transaction: Transaction, owner: str, name: str, settings: bytes | None) -> bool:
    """Insert a job, replacing the stored state of a configured job with this name. Return False if another stored job has the name."""
    now = transaction.now_ms
    inserted = transaction.execute(
        "INSERT INTO cron_job (owner_id, name, settings, created_at, changed_at, seen_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (owner_id, name) DO UPDATE SET settings = excluded.settings, created_at = excluded.created_at,"
        " changed_at = excluded.changed_at, seen_at = excluded.seen_at, paused_at = NULL, schedule = '' WHERE cron_job.settings IS NULL",
        (owner, name, settings, now, transaction.now, now),
    )
    return inserted.rowcount == 1


_DEFAULTS = Job("", "")
_KEPT_FIELDS = tuple(item.name for item in fields(Job) if item.name not in ("name", "owner", "configured"))


def _to_json(job: Job) -> JsonObject:
    """Return the fields that differ from their defaults."""
    values: JsonObject = {name: getattr(job, name) for name in _KEPT_FIELDS if getattr(job, name) != getattr(_DEFAULTS, name)}
    if job.allowed_uris:
        values["allowed_uris"] = list(job.allowed_uris)
    return values


def _state(row: Any) -> JobState:
    owner, name, settings, created_at, seen_at, paused_at, schedule = row
    if settings is None:
        return JobState(Job(name, "", owner=owner, configured=True), created_at, seen_at, paused_at, schedule=schedule)
    stored = cast("dict[str, Any]", parse_stored_object(settings))
    values = {key: stored[key] for key in _KEPT_FIELDS if key in stored}  # keys of a newer version of moot are ignored
    values["allowed_uris"] = tuple(values.get("allowed_uris", ()))
    return JobState(Job(name, values.pop("prompt", ""), owner=owner, **values), created_at, seen_at, paused_at)


def _job_run(row: Any) -> JobRun:
    no, owner, job, at, missed, attempt, status, reason, run, run_status, conversation, cost, error, settled, reason_of_end = row
    failure = parse_stored(error) if error is not None else None
    message = str(failure.get("message", "")) if isinstance(failure, dict) else ""
    return JobRun(
        *(no, Due(owner, job, at, missed, attempt), status, reason, run, run_status, conversation, cost, message, settled is not None),
        str(reason_of_end or ""),
    )
