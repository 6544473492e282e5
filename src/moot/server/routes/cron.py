"""Cron jobs of the caller, and their history."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from moot.errors import NotFound, UsageError
from moot.features.cron import JobView, job_view, job_views, reason_of
from moot.runtime.cron import OwnerJobs
from moot.server.auth import Chatter, Router, ToolUser
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.resources import check_directory
from moot.server.state import CurrentServer, Server
from moot.types.agent import Mode
from moot.types.cron import DeliveryMode, Job, JobRun


class JobRunOut(Out):
    """An entry of a job's history."""

    job: str
    at: int
    """Time at which the job was due, in ms."""
    status: str
    """Status of the run. If there is no run: `skipped`, `stored` (only the prompt was stored), `running` or `finished` (a command),
    `failed` or `deleted`.
    """
    conversation: str | None
    run: str | None
    cost: int | None
    """Cost in nano-dollars; null = unknown."""
    attempt: int
    """Number of the attempt; the first is 1, and retries count up."""
    missed: int
    """Number of missed earlier runs that this run replaces."""
    reason: str
    """Why there is no answer, the reply of a command, or a note about the run, such as about missed runs; otherwise empty."""

    @classmethod
    def from_record(cls, record: JobRun) -> JobRunOut:
        """Return the response for an entry."""
        due = record.due
        return cls(
            job=due.job,
            at=due.at,
            status=record.outcome,
            conversation=record.conversation,
            run=record.run,
            cost=record.cost,
            attempt=due.attempt,
            missed=due.missed,
            reason=reason_of(record),
        )


class JobOut(
    Out,
    of=Job,
    fields="""name prompt cron every at tz agent model mode conversation fresh directory project deliver delivery wake catch_up retries
    unattended hooks configured""",
):
    """A cron job."""

    directory: ShownPath
    hooks: dict[str, Any]
    next: int | None
    """Next time at which the job is due, in ms; null = the job is paused or has no further times."""
    paused: bool
    error: str
    """Why the job is ignored, for a job with an error in the configuration; otherwise empty."""
    last: JobRunOut | None
    """The job's newest run."""

    @classmethod
    def from_view(cls, view: JobView) -> JobOut:
        """Return the response for a job."""
        state, last = view.state, None if view.last is None else JobRunOut.from_record(view.last)
        return cls.of(state.job, next=view.next, paused=state.paused_at is not None, error=state.error, last=last)


class JobIn(In):
    """A job to add. Exactly one of `cron`, `every` and `at` is required."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    prompt: Annotated[str, Field(min_length=1, max_length=100_000)]
    cron: Annotated[str, Field(max_length=200)] = ""
    """Five fields as in crontab, such as `0 9 * * 1-5`."""
    every: Annotated[str, Field(max_length=20)] | Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Interval in seconds, or a text such as `5m`."""
    at: Annotated[str, Field(max_length=40)] = ""
    """Date and time of a job that runs once, such as `2026-12-24T18:00`."""
    tz: Annotated[str, Field(max_length=60)] = ""
    """IANA time zone, such as `Europe/Berlin`; empty = time zone of the server's machine."""
    agent: Annotated[str, Field(max_length=200)] | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    mode: Mode | None = None
    conversation: Annotated[str, Field(max_length=200)] | None = None
    """Id of the conversation that gets the prompts; null = a conversation created for this job."""
    fresh: bool = False
    """Start a new conversation for each run."""
    directory: Annotated[str, Field(max_length=4096)] = ""
    project: Annotated[str, Field(max_length=200)] = ""
    deliver: Annotated[str, Field(max_length=2000)] = "log"
    """Destination of the answers: `log` (the server's log), `webhook:NAME` or `channel:NAME:PLACE`."""
    delivery: DeliveryMode = "always"
    wake: bool = True
    """True = answer the prompt. False = only store it in the conversation."""
    catch_up: bool = True
    """Run once later if due times were missed, for example because the server was stopped."""
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    """Maximum number of retries after a failed run."""
    unattended: Literal["deny", "ask"] = "deny"
    """Tool calls that need approval are denied (`deny`) or wait for a person (`ask`)."""


router = Router(prefix="/api/cron", tags=["cron"])


def _jobs(server: Server, caller: Caller) -> OwnerJobs:
    return server.engine.cron.of(caller.owner_id)


@router.get("")
async def list_jobs(server: CurrentServer, caller: Chatter) -> ListOut[JobOut]:
    """List your jobs, sorted by name."""
    return ListOut(data=[JobOut.from_view(view) for view in await job_views(_jobs(server, caller))])


@router.post("", status_code=201)
async def add_job(server: CurrentServer, caller: ToolUser, attempt: CurrentAttempt, body: JobIn) -> JobOut:
    """Add a job. It runs with your permissions while the server is running."""
    jobs = _jobs(server, caller)
    if attempt.repeated:
        with suppress(NotFound):
            return JobOut.from_view(await job_view(jobs, body.name))
    if body.directory:
        await check_directory(caller, body.directory)
    await jobs.add(body.name, body.model_dump(exclude={"name"}))
    return JobOut.from_view(await job_view(jobs, body.name))


@router.get("/{name}")
async def get_job(server: CurrentServer, caller: Chatter, name: str) -> JobOut:
    """Get a job by name."""
    return JobOut.from_view(await job_view(_jobs(server, caller), name))


@router.delete("/{name}")
async def remove_job(server: CurrentServer, caller: ToolUser, name: str) -> JobOut:
    """Remove a job. Its history and conversations are kept. Jobs defined in the configuration can't be removed."""
    jobs = _jobs(server, caller)
    view = await job_view(jobs, name)
    await jobs.remove(name)
    return JobOut.from_view(view)


@router.post("/{name}/pause")
async def pause_job(server: CurrentServer, caller: ToolUser, name: str) -> JobOut:
    """Pause a job until it is resumed."""
    jobs = _jobs(server, caller)
    await jobs.pause(name)
    return JobOut.from_view(await job_view(jobs, name))


@router.post("/{name}/resume")
async def resume_job(server: CurrentServer, caller: ToolUser, name: str) -> JobOut:
    """Resume a paused job. It does not run for due times that passed during the pause."""
    jobs = _jobs(server, caller)
    await jobs.pause(name, paused=False)
    return JobOut.from_view(await job_view(jobs, name))


@router.post("/{name}/run", status_code=202)
async def run_job(server: CurrentServer, caller: ToolUser, name: str) -> JobRunOut:
    """Start a job now. Return 409 if its last run has not ended."""
    state = await _jobs(server, caller).get(name)
    if state.error:
        raise UsageError(state.error)
    return JobRunOut.from_record(await server.engine.cron.run_now(state))


@router.get("/{name}/history")
async def list_job_runs(
    server: CurrentServer, caller: Chatter, name: str, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> ListOut[JobRunOut]:
    """List the runs of a job, newest first. The history of a removed job is kept."""
    return ListOut(data=[JobRunOut.from_record(record) for record in await _jobs(server, caller).history(name, limit=limit)])
