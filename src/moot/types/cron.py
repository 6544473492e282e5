"""Cron jobs (prompts that run at set times), the history of their runs, and the delivery of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from moot.types.agent import Mode
from moot.types.canonical import JsonObject, empty
from moot.types.hooks import NEVER_SENT
from moot.types.token import LOCAL_USER
from moot.types.webhook import JobAnswer

DeliveryMode: TypeAlias = Literal["always", "tool", "never"]
"""always: deliver each answer · tool: only what the agent passes to the tool `deliver` · never: nothing."""

RecordStatus: TypeAlias = Literal["started", "skipped", "stored", "failed", "running", "finished"]
"""started: a run exists · skipped: nothing ran · stored: only the prompt was stored · failed: no run could be started, or a command failed
· running, finished: a command is running or has run, without a run."""

JOB_COMMANDS = ("compact", "context", "cost", "status", "tasks", "title")
"""Slash commands that the local user's cron jobs can run without a model. None of them gives runs more permissions."""

STOPPED = "moot was stopped while the command ran."
"""Reason in the record of a command that did not end."""

WEBHOOK, CHANNEL = "webhook", "channel"
"""The kinds of `Job.deliver` whose targets are configured: the name of an outgoing webhook, or the name of a channel and a place in it.
Each other kind is implemented by a `Delivery`."""

DELIVER = "deliver"
"""Name of the tool with which an agent delivers an answer if the job's delivery is `tool`; also the tool's key in `Run.settings`."""


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt and its schedule: exactly one of `cron`, `every` and `at` is set."""

    name: str
    prompt: str
    cron: str = ""
    """Five fields as in crontab(5), or a name such as `@daily`."""
    every: float = 0.0
    """Seconds between two runs."""
    at: str = ""
    """A date and time in ISO 8601. Without an offset, it is local time in `tz`."""
    tz: str = "UTC"
    """IANA name of the time zone."""
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    conversation: str | None = None
    """Id of the conversation that gets the prompts; None = the job has its own conversation."""
    fresh: bool = False
    """Start a new conversation for each run."""
    directory: str = ""
    project: str = ""
    allowed_uris: tuple[str, ...] = ()
    deliver: str = "log"
    """Destination of the answers: `KIND` or `KIND:TARGET`."""
    delivery: DeliveryMode = "always"
    wake: bool = True
    """False = the prompt is only stored in the conversation, and no run starts."""
    catch_up: bool = True
    """True if the job runs once, later, for times at which it could not run."""
    retries: int = 0
    """Maximum number of further attempts after a failed run."""
    unattended: Literal["deny", "ask"] = "deny"
    """deny: calls that need approval are denied · ask: these calls wait for a person."""
    hooks: JsonObject = field(default_factory=empty)
    """Tool calls before and after each run: `{"before_run": […], "after_run": […]}`. They run after the agent's own hooks."""
    options: JsonObject = field(default_factory=empty)
    """Further limits of its runs, see `Prompt.settings`. Set only by the tool `cron`, so that a job can't do more than its creator."""
    owner: str = LOCAL_USER
    configured: bool = False
    """True if the job is defined in the configuration, so that it can't be removed."""

    @property
    def schedule(self) -> str:
        """A text that identifies the schedule."""
        return f"{self.cron} {self.every:g} {self.at} {self.tz}"


@dataclass(frozen=True, slots=True)
class JobState:
    """A job and its stored state."""

    job: Job
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch; intervals count from here."""
    seen_at: int = 0
    """The last scheduled time that was handled, in milliseconds since the epoch."""
    paused_at: int | None = None
    """Time at which the job was paused, in milliseconds since the epoch; None = it is not paused."""
    error: str = ""
    """Reason why a job of the configuration is ignored; otherwise empty."""
    schedule: str = ""
    """`Job.schedule` of a configured job when a server last read it; empty = the job was not in the configuration."""


@dataclass(frozen=True, slots=True)
class Due:
    """One scheduled time (instant) of a job.

    The time is recorded in the transaction that stores the prompt, so the job never runs twice for it.
    """

    owner: str
    job: str
    at: int
    """The scheduled time, in milliseconds since the epoch."""
    missed: int = 0
    """Number of earlier instants that did not run and that this one replaces."""
    attempt: int = 1
    by_clock: bool = False
    """True if the scheduler started this instant, which then doesn't run if the job has just been paused or removed."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One entry of a job's history."""

    no: int
    due: Due
    status: RecordStatus
    reason: str = ""
    """Why nothing ran, what failed, or the reply of a command."""
    run: str | None = None
    run_status: str | None = None
    """Current status of the run; None = there is no run, or it was deleted."""
    conversation: str | None = None
    cost: int | None = None
    """Cost in nano-dollars; None = unknown."""
    error: str = ""
    settled: bool = True
    """False until the run has ended and its answer has been delivered."""
    finish_reason: str = ""
    """Reason why the answer ended."""

    @property
    def outcome(self) -> str:
        """The result in one word: the run's status if there is a run, but `skipped` or `blocked` if a hook ended the run."""
        if self.finish_reason in NEVER_SENT:
            return self.finish_reason
        return (self.run_status or "deleted") if self.status == "started" else self.status


class Jobs(Protocol):
    """One owner's jobs, for use by tools. Added jobs never get more rights than their creator has."""

    async def list(self) -> list[JobState]:
        """Return all jobs, sorted by name."""
        ...

    async def add(self, name: str, values: JsonObject) -> JobState:
        """Add a job.

        `values` has the keys of `cron.NAME` in the configuration. Raise UsageError for invalid values, Busy if the name is already used.
        """
        ...

    async def pause(self, name: str, *, paused: bool = True) -> JobState:
        """Pause or resume a job. Raise NotFound if there is no such job."""
        ...

    async def remove(self, name: str) -> None:
        """Remove a job. Its history and conversations are kept.

        Raise NotFound if there is no such job, UsageError if it is defined in the configuration.
        """
        ...


class JobStore(Protocol):
    """Stored jobs and the history of all jobs, for one owner or for all."""

    async def list(self) -> list[JobState]:
        """Return all stored jobs. For configured jobs, only the name and the state are set."""
        ...

    async def version(self) -> tuple[int, int]:
        """Return a value that changes whenever jobs change. This is cheap."""
        ...

    async def add(self, job: Job) -> JobState:
        """Store a new job. Raise Busy if the name is already used, LimitReached if the owner has too many."""
        ...

    async def ensure(self, schedules: Mapping[str, str]) -> None:
        """Store the schedules of the configured jobs, given by name. Instants before a change of the schedule don't count as missed."""
        ...

    async def pause(self, owner: str, name: str, *, paused: bool) -> None:
        """Pause or resume a job; a configured job without a stored state gets one. Instants during a pause don't count as missed."""
        ...

    async def remove(self, owner: str, name: str) -> None:
        """Remove a job but not its history. Raise NotFound if there is no such job."""
        ...

    async def record(self, due: Due, status: RecordStatus, reason: str) -> bool:
        """Record an instant that has no run. Return False if it is already recorded.

        If `status` is `running`, also mark unfinished commands of the job's earlier instants as failed.
        """
        ...

    async def history(self, name: str | None = None, *, at: int | None = None, limit: int = 50) -> list[JobRun]:
        """Return records, newest first: all of them, or only those of one job or one instant."""
        ...

    async def latest(self) -> list[JobRun]:
        """Return the newest record of each job."""
        ...

    async def ended(self) -> list[JobRun]:
        """Return the unsettled records whose run has ended, oldest first."""
        ...

    async def settle(self, no: int, reason: str = "", answer: JobAnswer | None = None) -> bool:
        """Mark a record as settled. Return False if it was settled before, so that only one process delivers the answer.

        Also store `answer`, for an outgoing webhook, and `reason`, which is replaced when the delivery has ended.
        """
        ...

    async def note(self, no: int, reason: str, *, status: RecordStatus | None = None, answer: JobAnswer | None = None) -> None:
        """Set the reason of a record, such as a failed delivery, and its status if given. Also store `answer`, for an outgoing webhook."""
        ...


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job's answer, for delivery."""

    job: str
    owner: str
    text: str
    status: str
    """Status of the run: finished, failed or cancelled."""
    conversation: str
    """Id of the conversation; empty if a command ran outside of one."""
    run: str
    """Id of the run, or of the scheduled time if a command ran instead."""


class Delivery(Protocol):
    """A way to deliver jobs' answers, selected by the setting `deliver`. Instances are stateless."""

    async def deliver(self, target: str, report: JobReport) -> None:
        """Deliver the report; `target` is the part of `deliver` after the colon. Raise MootError if that fails."""
        ...
