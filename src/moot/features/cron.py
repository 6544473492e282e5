"""Cron jobs as the command line and the server show them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from moot.runtime.cron import OwnerJobs, next_of
from moot.types.canonical import Json, JsonObject
from moot.types.cron import Job, JobRun, JobState

_SHOWN = (
    *("name", "prompt", "cron", "every", "at", "tz", "agent", "model", "mode", "conversation", "fresh", "directory", "project"),
    *("deliver", "delivery", "wake", "catch_up", "retries", "unattended", "hooks", "configured"),
)


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with its next and its last run."""

    state: JobState
    next: int | None
    """Time of the next run in ms; None if there is none."""
    last: JobRun | None

    def to_json(self) -> JsonObject:
        values = asdict(self.state.job)
        shown: JsonObject = {key: values[key] for key in _SHOWN}
        shown |= {"next": self.next, "paused": self.state.paused_at is not None, "error": self.state.error}
        return {**shown, "last": None if self.last is None else record_json(self.last)}


async def job_views(jobs: OwnerJobs) -> list[JobView]:
    """Return all jobs of an owner, sorted by name."""
    latest = await jobs.latest()
    return [_view(state, jobs.now, latest) for state in await jobs.list()]


async def job_view(jobs: OwnerJobs, name: str) -> JobView:
    """Return the job with this name. Raise NotFound if it does not exist."""
    return _view(await jobs.get(name), jobs.now, await jobs.latest())


def _view(state: JobState, now: int, latest: dict[str, JobRun]) -> JobView:
    return JobView(state, next_of(state, now), latest.get(state.job.name))


def record_json(record: JobRun) -> JsonObject:
    """Return an entry of a job's history as JSON."""
    due = record.due
    facts: JsonObject = {"job": due.job, "at": due.at, "status": record.outcome, "conversation": record.conversation, "run": record.run}
    facts |= {"cost": record.cost, "attempt": due.attempt, "missed": due.missed, "reason": reason_of(record)}
    return facts


def reason_of(record: JobRun) -> str:
    """Return the reason why a run has no answer, or another remark, such as missed runs, or an empty string if there is nothing to say."""
    if record.reason or record.error or not (missed := record.due.missed):
        return record.reason or record.error
    return "replaces 1 missed run" if missed == 1 else f"replaces {missed:,}{'+' if missed >= 1000 else ''} missed runs"


def schedule_of(job: Job) -> str:
    """Describe a job's schedule in one line."""
    if job.every:
        units = ((86_400, "d"), (3_600, "h"), (60, "m"))
        size, unit = next(((size, unit) for size, unit in units if job.every % size == 0), (1, "s"))
        return f"every {job.every / size:g}{unit}"
    return f"{job.cron or f'at {job.at}'} {job.tz}"


def records_json(records: list[JobRun]) -> list[Json]:
    """Return entries of a job's history as JSON, in the same order."""
    return [record_json(record) for record in records]
