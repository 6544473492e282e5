"""The cron jobs of one owner: those in the store and in the configuration, and changes to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from moot.agents.known import default_agent
from moot.config.effects import delivery_problem
from moot.config.settings import Settings, job_of
from moot.errors import LimitReached, NotFound, UsageError
from moot.plugins import PROVIDERS
from moot.plugins.registry import attribute, hint
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, load_project_agents, mode_of
from moot.types.canonical import JsonObject
from moot.types.cron import Job, JobRun, JobState
from moot.types.ids import Clock, SystemClock
from moot.types.run import RunRequest
from moot.types.store import Store
from moot.types.token import LOCAL_USER

_CHECKED = "moot.config.validation:checked_job"
_NEXT = "moot.config.schedules:next_after"
"""Loaded by path: most processes have no jobs."""

SHORTEST = 60.0
"""Minimum interval of a job that an agent adds, in seconds."""

MOST_ADDED = 100
"""Maximum number of jobs per owner. It applies only to jobs that agents add."""

_KEPT_OPTIONS = ("tools", "max_cost", "timeout", "max_steps")


def merged(settings: Settings, stored: Iterable[JobState]) -> list[JobState]:
    """Return all jobs, sorted by name. If a stored and a configured job have the same name, the stored one is used."""
    found: list[JobState] = []
    states: dict[str, JobState] = {}
    for state in stored:
        if not state.job.configured:
            found.append(state)
        if state.job.owner == LOCAL_USER:
            states[state.job.name] = state
    for name, job in settings.cron.items():
        state = states.get(name, JobState(job))
        error = "" if state.job.configured else f"A job named {name!r} was already added by command. Remove or rename one of them."
        found.append(dataclasses.replace(state, job=job, error=error))
    return sorted(found, key=lambda state: (state.job.name, state.job.owner, state.error))


def next_of(state: JobState, now: int) -> int | None:
    """Return the next time of a job after `now`, in ms; None if the job is paused, ignored or never due again."""
    if state.paused_at is not None or state.error:
        return None
    return attribute(_NEXT)(state.job, now, state.created_at or now)


def job_directory(job: Job) -> str:
    """Return the directory of a job's conversations. For the local user, it defaults to the home folder."""
    return job.directory or (str(Path.home()) if job.owner == LOCAL_USER else "")


class OwnerJobs:
    """`Jobs` of one owner. Jobs may do everything that the owner may do."""

    def __init__(self, settings: Callable[[], Settings], store: Store, owner: str = LOCAL_USER, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._store = store
        self._jobs = store.of(owner).jobs
        self._owner = owner
        self._clock = clock or SystemClock()

    @property
    def now(self) -> int:
        """The current time in ms."""
        return self._clock.now() // 1000

    async def list(self) -> list[JobState]:
        return [state for state in merged(self._settings(), await self._jobs.list()) if state.job.owner == self._owner]

    async def latest(self) -> dict[str, JobRun]:
        """Return the newest record of each job, by name."""
        return {record.due.job: record for record in await self._jobs.latest()}

    async def get(self, name: str) -> JobState:
        """Return a job by name. Raise NotFound if it does not exist."""
        states = await self.list()
        for state in states:
            if state.job.name == name:
                return state
        raise NotFound(f"No job is named {name!r}.{hint(name, [state.job.name for state in states])}", fix="moot cron list")

    async def add(self, name: str, values: JsonObject, **bounds: Any) -> JobState:
        """Implement `Jobs.add`. `bounds` are fields of the job that override the given values."""
        section: JsonObject = attribute(_CHECKED)(name, values)
        job = job_of(name, section, owner=self._owner, **bounds)
        if self._owner == LOCAL_USER and name in self._settings().cron:
            raise UsageError(
                f"The job {name!r} is defined in the configuration.", fix="Choose another name, or edit the 'cron' section of config.yaml."
            )
        await self._check_names(job)
        mine = self._store.of(self._owner)
        if job.conversation is not None:
            job = dataclasses.replace(job, conversation=(await mine.conversations.get(job.conversation)).id)
        if job.project:
            job = dataclasses.replace(job, project=(await mine.projects.get(job.project)).id)
        if attribute(_NEXT)(job, self.now, self.now) is None:
            raise UsageError(f"The time {job.at} is in the past.")
        return await self._jobs.add(job)

    async def _check_names(self, job: Job) -> None:
        """Raise UsageError if the job names an unknown delivery, provider or agent, or an agent that can't deliver."""
        settings = self._settings()
        webhooks, channels = (settings.outgoing_webhooks, settings.channels) if self._owner == LOCAL_USER else ((), ())
        if problem := delivery_problem(job.deliver, webhooks, channels):
            raise UsageError(problem)
        known = sorted({*PROVIDERS.names(), *settings.providers})
        _, at, provider = (job.model or "").rpartition("@")
        if at and provider not in known:
            raise UsageError(f"Provider {provider!r} not found.{hint(provider, known)}", fix="moot providers list")
        await load_project_agents(settings, job.directory)
        agent = find_agent(settings, job.agent or default_agent(settings, job.directory), {}, job.directory)
        if job.delivery == "tool" and job.conversation is None and agent.agent_type != "moot":
            message = f"The agent {agent.name!r} can't call the tool 'deliver', so nothing would be delivered."
            raise UsageError(message, fix="Use delivery: always, or another agent.")

    async def pause(self, name: str, *, paused: bool = True) -> JobState:
        await self.get(name)
        await self._jobs.pause(self._owner, name, paused=paused)
        return await self.get(name)

    async def remove(self, name: str) -> None:
        if (await self.get(name)).job.configured:
            raise UsageError(
                f"The job {name!r} is defined in the configuration.", fix="Remove it from the 'cron' section of config.yaml, or pause it."
            )
        await self._jobs.remove(self._owner, name)

    async def history(self, name: str | None = None, *, limit: int = 50) -> list[JobRun]:
        """Return the history, newest first. Raise NotFound if the name has neither a job nor a history."""
        found = await self._jobs.history(name, limit=limit)
        if not found and name is not None:
            await self.get(name)
        return found


class Caller(Protocol):
    """The part of a leg that is needed to add a job."""

    runtime: Runtime
    request: RunRequest


class RunJobs(OwnerJobs):
    """`Jobs` for tools. New jobs get at most the rights of the run that adds them."""

    def __init__(self, leg: Caller) -> None:
        runtime = leg.runtime
        super().__init__(lambda: runtime.settings, runtime.store, leg.request.conversation.owner, clock=runtime.clock)
        self._leg = leg

    async def add(self, name: str, values: JsonObject, **bounds: Any) -> JobState:
        request, settings = self._leg.request, self._settings()
        conversation = request.conversation
        here = bool(values.get("conversation"))
        if 0 < attribute("moot.config.schema.basics:seconds")(values.get("every") or 0) < SHORTEST:
            raise UsageError(f"The interval must be at least {SHORTEST:g} seconds.")
        if len(await self.list()) >= MOST_ADDED:
            raise LimitReached(f"There are already {MOST_ADDED} jobs.", fix="Remove some first.")
        if not here and conversation.own_settings.network is False:
            raise UsageError("This conversation has no network access, so its jobs must run in this conversation.")
        limits: dict[str, Any] = {
            "directory": conversation.directory,
            "project": conversation.project,
            "allowed_uris": tuple(conversation.allowed_uris),
            "agent": request.run.agent,
            "model": request.run.model or None,
            "mode": mode_of(settings, request.settings, conversation),
            "unattended": "deny",
            "options": {key: request.settings[key] for key in _KEPT_OPTIONS if key in request.settings},
        }
        return await super().add(name, values | ({"conversation": conversation.id} if here else {}), **limits, **bounds)
