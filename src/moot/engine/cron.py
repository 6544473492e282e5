"""Cron jobs in a server process: start them when they are due, retry failed runs and deliver answers."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TypeAlias

import anyio

from moot.engine.runs import LocalRuns
from moot.errors import Busy, MootError, NotFound, Refused, StoreError, UsageError
from moot.plugins import DELIVERIES
from moot.plugins.registry import attribute
from moot.runtime.cron import OwnerJobs, job_directory, merged
from moot.runtime.runtime import Runtime
from moot.types.canonical import JsonObject
from moot.types.crash import point
from moot.types.cron import CHANNEL, DELIVER, WEBHOOK, Delivery, Due, Job, JobReport, JobRun, JobState
from moot.types.hooks import HOOKS, VARIABLES
from moot.types.message import Part, text_of, text_part
from moot.types.run import Prompt
from moot.types.token import LOCAL_USER, expand_scopes
from moot.types.webhook import JobAnswer

GRACE = 60_000
"""Maximum delay in ms with which a job without `catch_up` is still run."""

FIRST_RETRY, LONGEST_RETRY = 30_000, 3_600_000
"""First and longest pause between a failed run and the next attempt, in ms. The pause doubles each time."""

SET_BACK = 60.0
"""Number of seconds. If the system clock is set back by more than this, all due times are computed again."""

DELIVERY = 300.0
"""Time limit for a delivery, in seconds."""
LONGEST_ANSWER = 32_000
"""Maximum number of characters of an answer that is sent to a webhook."""

_POLL = 0.25
"""Seconds between two checks for changed jobs and ended runs."""

_SEARCHED = 20
"""Maximum number of a job's earlier runs to search for one that finished."""

_UNDELIVERED = "The answer was not delivered: moot was stopped."
_FAILED = "The answer could not be delivered: {}"

_POST = "moot.engine.channels:post"
"""Path of a function, loaded on first use, because channels import the whole engine."""

_EXPANDED, _JOB_COMMAND = "moot.commands.submission:expanded", "moot.commands.submission:job_command"
"""Paths of functions in a higher layer, imported when a job's prompt is a slash command."""

_NEXT, _LAST = "moot.config.schedules:next_after", "moot.config.schedules:last_until"
"""Paths of functions, loaded when there is a job."""

log = logging.getLogger("moot.cron")


RunCommand: TypeAlias = Callable[[Prompt, tuple[str, str]], Awaitable[tuple[str, str | None]]]
"""Function that runs a slash command, given as name and argument, for a job. It returns the reply, and the id of the conversation or None.
It raises MootError if the command fails.
"""


class LogDelivery:
    """`Delivery` to moot's log, which is shown by `moot logs`."""

    async def deliver(self, target: str, report: JobReport) -> None:
        text = report.text if len(report.text) <= _LONGEST else f"{report.text[:_LONGEST]}…"
        extra = {"run": report.run, "conversation": report.conversation}
        log.log(logging.INFO if report.status == "finished" else logging.WARNING, "%s %s: %s", report.job, report.status, text, extra=extra)


_LONGEST = 2_000
"""Maximum number of characters of an answer in the log. The whole answer is in the conversation."""


class CronJobs:
    """The jobs of all owners in this process. Each job has an entry in the clock but no task of its own."""

    def __init__(self, runtime: Runtime, runs: LocalRuns) -> None:
        self._runtime = runtime
        self._runs = runs
        self._store = runtime.store.jobs
        self._scheduled: dict[str, JobState] = {}
        self._retries: set[int] = set()
        """Numbers of the records whose next attempt is scheduled in the clock."""
        self.run_command: RunCommand | None = None
        """The function that runs slash commands. It needs the whole engine, so it is set by `open_engine`."""
        self._offset = self._wall_offset()

    def of(self, owner: str) -> OwnerJobs:
        """Return the jobs of one owner."""
        return OwnerJobs(lambda: self._runtime.settings, self._runtime.store, owner, clock=self._runtime.clock)

    async def work(self) -> None:
        """Start jobs when they are due, until cancelled. Changes by other processes or to the configuration take effect immediately."""
        seen: object = None
        while True:
            try:
                version = (await self._store.version(), self._runtime.settings.generation)
                if version != seen:
                    await self.refresh()
                    seen = version
                self.adjust()
                await self.settle()
            except MootError as error:  # such as a full disk; the next round tries again
                log.error("cron jobs: %s", error)
            await anyio.sleep(_POLL)

    async def refresh(self) -> None:
        """Schedule new and changed jobs, and remove jobs that no longer exist from the clock."""
        await self._ensure()
        current = {_key(state.job): state for state in merged(self._runtime.settings, await self._store.list()) if not state.error}
        for key in self._scheduled.keys() - current.keys():
            self._runs.clock.cancel(key)
        for key, state in list(current.items()):
            known = self._scheduled.get(key)
            if known is not None and dataclasses.replace(known, seen_at=state.seen_at) == state:
                current[key] = known
            else:
                self._schedule(state)
        self._scheduled = current

    def adjust(self) -> None:
        """Compute all due times again if the system clock was set back. A job never runs twice for the same scheduled time."""
        before, self._offset = self._offset, self._wall_offset()
        if self._offset < before - SET_BACK:
            for state in self._scheduled.values():
                self._schedule(state)

    def _wall_offset(self) -> float:
        clock = self._runtime.clock
        return clock.now() / 1_000_000 - clock.monotonic()

    async def _ensure(self) -> None:
        states = {state.job.name: state for state in await self._store.list() if state.job.owner == LOCAL_USER}
        configured = self._runtime.settings.cron
        wanted = {name: job.schedule for name, job in configured.items() if name not in states or states[name].job.configured}
        if wanted != {name: state.schedule for name, state in states.items() if state.schedule}:
            await self._store.ensure(wanted)

    def _schedule(self, state: JobState) -> None:
        key, clock = _key(state.job), self._runs.clock
        now = self._now
        # the system clock may have been set back since the last scheduled time
        due = None if state.paused_at is not None else attribute(_NEXT)(state.job, min(state.seen_at, now), state.created_at)
        if due is None:
            clock.cancel(key)
        else:
            clock.at(key, due, partial(self._fire, key, due))

    async def _fire(self, key: str, first: int) -> None:
        """Handle the latest of the scheduled times between `first` and now. Earlier ones count as missed."""
        state = self._scheduled.get(key)
        if state is None or state.paused_at is not None:
            return
        at, missed = attribute(_LAST)(state.job, first, max(self._now, first), state.created_at)
        due = Due(state.job.owner, state.job.name, at, missed, by_clock=True)
        handled = True
        try:
            if self._now - at > GRACE and not state.job.catch_up:
                await self._store.record(dataclasses.replace(due, missed=missed + 1), "skipped", "The job could not run at this time.")
            else:
                await self._start(state.job, due)
        except StoreError as error:  # such as a full disk
            log.error("could not start the job %s: %s", state.job.name, error)
            handled = False
        finally:
            if self._scheduled.get(key) is state and handled:
                self._scheduled[key] = state = dataclasses.replace(state, seen_at=at)
                self._schedule(state)
            elif self._scheduled.get(key) is state:
                self._runs.clock.at(key, self._now + FIRST_RETRY, partial(self._fire, key, first))

    async def _start(self, job: Job, due: Due) -> None:
        """Submit the job's prompt for one scheduled time, or record why there is no run."""
        try:
            await self._check_owner(job)
            await self.submit(job, due)
        except Busy as error:
            await self._store.record(due, "skipped", error.message)  # no effect if this time already has a record
        except StoreError:
            raise
        except MootError as error:
            log.error("the job %s failed: %s", job.name, error)
            await self._store.record(due, "failed", error.advice())

    async def _check_owner(self, job: Job) -> None:
        """Raise Refused if the job's owner is no longer allowed to start runs with tools."""
        if job.owner == LOCAL_USER:
            return
        tokens = await self._runtime.store.tokens.list()
        if not any(token.owner == job.owner and "tools" in expand_scopes(token.scopes, job.owner) for token in tokens):
            raise Refused("The owner of this job has no valid token with the scope 'tools'.", fix="Create one with `moot tokens create`.")

    async def submit(self, job: Job, due: Due, *, shown: bool = False) -> None:
        """Store the prompt of a job and start its run, or run its command.
        Raise Busy if the job has already run for this scheduled time, or is still running.

        A command's reply that is `shown` to the user isn't logged.
        """
        prompt = _prompt(job, due, await self._variables(job))
        if job.prompt.startswith("/") and (command := attribute(_JOB_COMMAND)(prompt)) is not None:
            await self._run_command(job, due, (prompt, command), shown=shown)
            return
        prompt = await self._expanded(prompt)
        point("cron.due")
        if job.wake:
            await self._runs.submit(prompt)
        else:
            await self._runs.note(prompt)

    async def _run_command(self, job: Job, due: Due, command: tuple[Prompt, tuple[str, str]], *, shown: bool) -> None:
        """Run a slash command that needs no model, and deliver its reply. Raise Busy if the job has already run for this scheduled time."""
        assert self.run_command is not None, "open_engine sets it"
        if not await self._store.record(due, "running", ""):
            raise Busy(f"The job {due.job!r} has already run for this time.")
        record = await self.record(due)
        status: Literal["finished", "failed"] = "finished"
        conversation: str | None = None
        try:
            text, conversation = await self.run_command(*command)
        except MootError as error:
            status, text = "failed", error.advice()
        report = JobReport(job.name, job.owner, text, status, conversation or "", f"{job.name}:{due.at}")
        answer = _webhook_answer(job, report) if job.delivery == "always" else None
        await self._store.note(record.no, text[:_LONGEST], status=status, answer=answer)
        if job.delivery == "always" and answer is None and not (shown and job.deliver == "log"):
            await self._deliver(dataclasses.replace(record, reason=text[:_LONGEST]), job.deliver, report)

    async def _expanded(self, prompt: Prompt) -> Prompt:
        """Return the prompt. If it is a slash command, return the text that the command sends."""
        return await attribute(_EXPANDED)(self._runtime, prompt) if text_of(prompt.parts).startswith("/") else prompt

    async def _variables(self, job: Job) -> JsonObject:
        """Return the hook variables that describe the job's last run, if that run was in a different conversation."""
        if not job.fresh or not job.hooks:
            return {}
        for record in await self._runtime.store.of(job.owner).jobs.history(job.name, limit=_SEARCHED):
            if record.run is not None and record.run_status == "finished":
                run = await self._runtime.store.records.run(record.run)
                started = datetime.fromtimestamp((run.started_at or run.created_at) / 1000, UTC)
                text = text_of((await self._runtime.store.conversations.message(run.message)).parts)
                return {"last_run": started.isoformat(timespec="seconds"), "last_response": text}
        return {}

    async def run_now(self, state: JobState, *, shown: bool = False) -> JobRun:
        """Start a job now, even if it is paused, and return the record of the run. Raise the same errors as `submit`."""
        due = Due(state.job.owner, state.job.name, self._now)
        await self.submit(state.job, due, shown=shown)
        return await self.record(due)

    async def record(self, due: Due) -> JobRun:
        """Return the record of a scheduled time. Raise NotFound if the job has not run for it."""
        for found in await self._runtime.store.of(due.owner).jobs.history(due.job, at=due.at):
            return found
        raise NotFound(f"The job {due.job!r} has no run for this time.")

    # ── after a run ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def settle(self) -> None:
        """Deliver the answers of runs that have ended, and schedule the next attempts of failed runs."""
        for record in await self._store.ended():
            if record.no in self._retries:
                continue
            job = self._active(record)
            if job is not None and record.run_status == "failed" and record.due.attempt <= job.retries:
                await self._retry_later(job, record)
            elif (report := await self._settled(record)) is not None:
                # as a task of its own, because it may take long
                self._runs.clock.at(f"cron-deliver:{record.no}", 0, partial(self._deliver, record, *report))

    def _active(self, record: JobRun) -> Job | None:
        """Return the job of a record, or None if it was removed or paused."""
        state = self._scheduled.get(f"cron:{record.due.owner}:{record.due.job}")
        return None if state is None or state.paused_at is not None else state.job

    async def finish(self, record: JobRun, *, shown: bool = False) -> None:
        """Deliver the answer of a run, unless another process is doing so, or the answer was already `shown` and would only be logged."""
        if (report := await self._settled(record)) is not None:
            if shown and report[0] == "log":
                await self._store.note(record.no, "")
            else:
                await self._deliver(record, *report)

    async def _settled(self, record: JobRun) -> tuple[str, JobReport] | None:
        """Mark a record as settled. Return the destination and the report, or None if there is nothing for this process to deliver."""
        job: Job | None = None
        report: JobReport | None = None
        reason = ""
        try:
            job = (await self.of(record.due.owner).get(record.due.job)).job
            report = await self._report(job, record)
        except NotFound:
            pass  # the job was removed, or the answer was purged
        except MootError as error:
            reason = _FAILED.format(error.message)
        answer = None if job is None or report is None else _webhook_answer(job, report)
        if report is not None and answer is None:
            reason = _UNDELIVERED
        if not await self._store.settle(record.no, reason, answer) or job is None or report is None or answer is not None:
            return None
        point("cron.settled")
        return job.deliver, report

    async def _deliver(self, record: JobRun, where: str, report: JobReport) -> None:
        reason = ""
        try:
            kind, _, target = where.partition(":")
            with anyio.fail_after(DELIVERY):
                if kind == CHANNEL:
                    await attribute(_POST)(self._runtime.settings, target, report)
                elif kind in DELIVERIES:
                    delivery: Delivery = DELIVERIES.make(kind)
                    await delivery.deliver(target, report)
                else:
                    raise UsageError(f"Unknown delivery {kind!r}.")
        except MootError as error:
            reason = error.message
        except TimeoutError:
            reason = f"It took longer than {DELIVERY:g} seconds."
        except Exception as error:  # noqa: BLE001  a delivery of a plugin may raise anything
            reason = repr(error)
        if reason:
            log.error("could not deliver the answer of the job %s: %s", report.job, reason)
        await self._store.note(record.no, _FAILED.format(reason) if reason else record.reason)

    async def _report(self, job: Job, record: JobRun) -> JobReport | None:
        """Return the report to deliver, or None if there is nothing to deliver."""
        if job.delivery == "never" or record.run is None or record.run_status is None:
            return None
        run = await self._runtime.store.records.run(record.run)
        parts = (await self._runtime.store.conversations.message(run.message)).parts
        text = _delivered(parts) if job.delivery == "tool" else text_of(list(parts)).strip()
        if run.status != "finished" and job.delivery == "always":
            text = record.error or text or f"The run was {run.status}."
        return JobReport(job.name, job.owner, text, run.status, run.conversation, run.id) if text else None

    async def _retry_later(self, job: Job, record: JobRun) -> None:
        run = await self._runtime.store.records.run(record.run or "")
        pause = min(FIRST_RETRY << record.due.attempt - 1, LONGEST_RETRY)
        self._retries.add(record.no)
        self._runs.clock.at(f"cron-retry:{record.no}", (run.ended_at or self._now) + pause, partial(self._retry, record))

    async def _retry(self, record: JobRun) -> None:
        """Start the next attempt, unless another process has already done so or the job is no longer allowed to run."""
        try:
            if record in await self._store.ended() and not await self._try_again(record):
                await self.finish(record)
            self._retries.discard(record.no)
        except (Busy, StoreError) as error:  # such as a run that was started by hand
            log.info("the job %s will be retried later: %s", record.due.job, error)
            self._runs.clock.at(f"cron-retry:{record.no}", self._now + FIRST_RETRY, partial(self._retry, record))

    async def _try_again(self, record: JobRun) -> bool:
        """Start the next attempt. Return False if there are no more attempts.
        Raise Busy or StoreError if the attempt must be started later.
        """
        job = self._active(record)
        if job is None:
            return False
        try:
            run = await self._runtime.store.records.run(record.run or "")
            conversation = await self._runtime.store.conversations.get(run.conversation)
            if conversation.head != run.message:  # someone has continued the conversation in the meantime
                return False
            await self._check_owner(job)
            due = dataclasses.replace(record.due, attempt=record.due.attempt + 1, by_clock=True)
            prompt = await self._expanded(_prompt(job, due, await self._variables(job)))
            await self._runs.submit(dataclasses.replace(prompt, parts=(), conversation=conversation.id, answers=run.message, key=None))
        except (Busy, StoreError):
            raise
        except MootError as error:
            log.error("could not retry the job %s: %s", job.name, error)
            return False
        return True

    @property
    def _now(self) -> int:
        return self._runtime.now() // 1000


def _key(job: Job) -> str:
    return f"cron:{job.owner}:{job.name}"


def _webhook_answer(job: Job, report: JobReport) -> JobAnswer | None:
    """Return the answer to send to the job's outgoing webhook, or None if the job has no webhook as its destination."""
    kind, _, target = job.deliver.partition(":")
    return JobAnswer(target, job.name, report.text[:LONGEST_ANSWER]) if kind == WEBHOOK else None


def _prompt(job: Job, due: Due, variables: JsonObject) -> Prompt:
    instant = datetime.fromtimestamp(due.at / 1000, UTC).isoformat(timespec="milliseconds")
    settings: JsonObject = {"job": job.name, **job.options}
    if job.hooks:
        settings[HOOKS] = job.hooks
    if variables:
        settings[VARIABLES] = variables
    if job.unattended == "deny":
        settings["unattended"] = "deny"
    if job.delivery == "tool":
        settings[DELIVER] = True
    return Prompt(
        (text_part(job.prompt),),
        conversation=job.conversation,
        key=None if job.conversation is not None else f"cron:{job.name}:{instant}" if job.fresh else f"cron:{job.name}",
        client_id=f"cron:{job.name}:{instant}",
        directory=job_directory(job),
        project=job.project,
        allowed_uris=job.allowed_uris,
        agent=job.agent,
        model=job.model,
        mode=job.mode,
        on_busy="queue",
        trigger="cron",
        on_crash="resume",
        settings=settings,
        user=None if job.owner == LOCAL_USER else job.owner,
        due=due,
    )


def _delivered(parts: tuple[Part, ...]) -> str:
    """Return the texts that the agent passed to the tool `deliver`."""
    texts: list[str] = []
    for part in parts:
        given = part.get("input")
        if part["type"] == f"tool-{DELIVER}" and part.get("state") == "output-available" and isinstance(given, dict):
            texts.append(str(given.get("text", "")))
    return "\n\n".join(texts)
