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
    """The time that the job was due, in ms."""
    status: str
    """Status of the run; or skipped, stored (only the prompt), failed (there is no run) or deleted."""
    conversation: str | None
    run: str | None
    cost: int | None
    """Nano-dollars; null = unknown."""
    attempt: int
    """1 for the first attempt."""
    missed: int
    """Number of earlier times that did not run and that this one replaces."""
    reason: str
    """Why there is no answer, or what else is unusual; empty if nothing is."""

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
    """The next time, in ms; null = paused or over."""
    paused: bool
    error: str
    """Why a job of the configuration is ignored; empty if it is not."""
    last: JobRunOut | None
    """Its newest run."""

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
    """One date and time, such as `2026-12-24T18:00`."""
    tz: Annotated[str, Field(max_length=60)] = ""
    """IANA time zone; empty = that of the server's machine."""
    agent: Annotated[str, Field(max_length=200)] | None = None
    model: Annotated[str, Field(max_length=200)] | None = None
    mode: Mode | None = None
    conversation: Annotated[str, Field(max_length=200)] | None = None
    """Id of the conversation that gets the prompts; null = one of the job's own."""
    fresh: bool = False
    """Start a new conversation for each run."""
    directory: Annotated[str, Field(max_length=4096)] = ""
    project: Annotated[str, Field(max_length=200)] = ""
    deliver: Annotated[str, Field(max_length=2000)] = "log"
    """`log` or `webhook:NAME`."""
    delivery: DeliveryMode = "always"
    wake: bool = True
    """False = only store the prompt in the conversation."""
    catch_up: bool = True
    """Run once after a time in which the job could not run."""
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    """Maximum number of retries after a failed run."""
    unattended: Literal["deny", "ask"] = "deny"
    """Calls that need approval are denied, or wait for a person."""


router = Router(prefix="/api/cron", tags=["cron"])


def _jobs(server: Server, caller: Caller) -> OwnerJobs:
    return server.engine.cron.of(caller.owner_id)


@router.get("")
async def list_jobs(server: CurrentServer, caller: Chatter) -> ListOut[JobOut]:
    """List your jobs, sorted by name."""
    return ListOut(data=[JobOut.from_view(view) for view in await job_views(_jobs(server, caller))])


@router.post("", status_code=201)
async def add_job(server: CurrentServer, caller: ToolUser, attempt: CurrentAttempt, body: JobIn) -> JobOut:
    """Add a job. It runs with your rights while the server is running."""
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
    """Remove a job. Its history and conversations stay. A job of the configuration can't be removed."""
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
    """Resume a paused job. Times that passed meanwhile are not caught up."""
    jobs = _jobs(server, caller)
    await jobs.pause(name, paused=False)
    return JobOut.from_view(await job_view(jobs, name))


@router.post("/{name}/run", status_code=202)
async def run_job(server: CurrentServer, caller: ToolUser, name: str) -> JobRunOut:
    """Start a job now. 409 if its last run is not over."""
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
