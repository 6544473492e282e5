"""The commands of `moot cron`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import age, print_fields, print_table
from moot.cli.console.lines import write_done
from moot.cli.context.configuration import configured, here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.context.output import Out
from moot.cli.follow import Follower
from moot.cli.options import NO_SHOW, ShowFlags
from moot.cli.run import make_show
from moot.config.schedules import next_after
from moot.errors import UsageError
from moot.features.cron import JobView, job_view, job_views, reason_of, record_json, records_json, schedule_of
from moot.runtime.cron import OwnerJobs
from moot.store import open_store
from moot.types.agent import Mode
from moot.types.canonical import Json, JsonObject
from moot.types.cron import DeliveryMode
from moot.types.token import LOCAL_USER

Name = Annotated[str, Parameter(help="Name of the job.")]
Limit = Annotated[int, Parameter(name=("--limit", "-n"), minimum=1, maximum=1000, help="Maximum number of results.")]


@asynccontextmanager
async def _jobs(output: Out) -> AsyncGenerator[OwnerJobs, None]:
    settings = configured(output).settings
    async with await open_store(settings) as store:
        yield OwnerJobs(lambda: settings, store)


async def add_job(
    name: Name,
    /,
    *,
    prompt: Annotated[str, Parameter(help="Prompt to run.")],
    cron: Annotated[str, Parameter(metavar="EXPRESSION", help='Schedule in crontab syntax: "MINUTE HOUR DAY MONTH WEEKDAY".')] = "",
    every: Annotated[str | None, Parameter(metavar="DURATION", help="Interval between runs, such as 30s, 5m or 1d.")] = None,
    at: Annotated[str, Parameter(metavar="TIME", help="Date and time of a single run, such as 2026-12-24T18:00.")] = "",
    tz: Annotated[str, Parameter(metavar="ZONE", help="Time zone, such as Europe/Berlin. Defaults to this machine's time zone.")] = "",
    agent: Annotated[str | None, Parameter(name=("--agent", "-a"), kind="agent", help="Agent that runs the prompt.")] = None,
    model: Annotated[
        str | None,
        Parameter(
            name=("--model", "-m"),
            kind="model",
            help="Model: MODEL@PROVIDER, a model name, or a name defined in the configuration, such as small.",
        ),
    ] = None,
    mode: Annotated[Mode | None, Parameter(metavar="MODE", help="Permission mode: which tool calls run without approval.")] = None,
    conversation: Annotated[
        str | None, Parameter(kind="conversation", help="Conversation for all runs of the job. By default, the job creates one.")
    ] = None,
    fresh: Annotated[bool, Parameter(help="Start a new conversation for each run.")] = False,
    deliver: Annotated[
        str,
        Parameter(
            metavar="TARGET", help="Where to deliver answers: log (moot's log), webhook:NAME or channel:NAME:PLACE. See docs/cron.md."
        ),
    ] = "log",
    delivery: Annotated[
        DeliveryMode,
        Parameter(metavar="WHEN", help="What to deliver: each answer, only texts that the agent passes to the 'deliver' tool, or nothing."),
    ] = "always",
    no_wake: Annotated[bool, Parameter(help="Add the prompt to the conversation without running an agent.")] = False,
    no_catch_up: Annotated[bool, Parameter(help="Skip runs that were missed because no server was running.")] = False,
    retries: Annotated[int, Parameter(minimum=0, maximum=10, help="Maximum number of retries after a failed run.")] = 0,
    unattended: Annotated[
        Literal["deny", "ask"],
        Parameter(metavar="ACTION", help="What to do with tool calls that need approval: deny them, or let them wait for your answer."),
    ] = "deny",
    json: AsJson = False,
    output: Out,
) -> None:
    """Add a cron job."""
    values: JsonObject = {"prompt": prompt, "cron": cron, "at": at, "tz": tz, "agent": agent, "model": model, "mode": mode, "fresh": fresh}
    values |= {"deliver": deliver, "delivery": delivery, "wake": not no_wake, "catch_up": not no_catch_up, "retries": retries}
    values |= {"unattended": unattended, "directory": str(here())}
    if every is not None:
        values["every"] = float(every) if every.isdecimal() else every
    if conversation is not None:
        async with opened(output) as engine:
            values["conversation"] = (await find_conversation(engine, conversation, str(here()))).id
    async with _jobs(output) as jobs:
        await jobs.add(name, values)
        view = await job_view(jobs, name)
    write_done(output, json, view.to_json(), f"added {name}; next run: {_when(view.next, view.state.job.tz)}")


async def list_jobs(*, json: AsJson = False, output: Out) -> None:
    """Print all jobs, sorted by name."""
    async with _jobs(output) as jobs:
        views = await job_views(jobs)
    if json:
        output.json({"data": list[Json]([view.to_json() for view in views]), "next_cursor": None})
    elif views:
        print_table(output, ["NAME", "SCHEDULE", "NEXT", "LAST", "PROMPT"], [_row(view) for view in views])
    else:
        output.say('moot: no jobs; add one with: moot cron add NAME --every 1h --prompt "…"', "dim")


async def show_job(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Print the settings of a job, its next run and its last run."""
    async with _jobs(output) as jobs:
        view = await job_view(jobs, name)
    facts = view.to_json()
    if not json:
        facts |= {"next": _when(view.next, view.state.job.tz), "last": _last(view)}
    print_fields(output, facts if json else {key: facts[key] for key in facts if facts[key] not in ("", None, 0, False, {})}, json=json)


async def next_times(name: Name, /, *, limit: Limit = 5, json: AsJson = False, output: Out) -> None:
    """Print the next scheduled times of a job."""
    async with _jobs(output) as jobs:
        state, now = await jobs.get(name), jobs.now
    times: list[int] = []
    while len(times) < limit and (at := next_after(state.job, times[-1] if times else now, state.created_at or now)) is not None:
        times.append(at)
    if json:
        output.json({"name": name, "paused": state.paused_at is not None, "data": list[Json](times)})
        return
    for at in times:
        output.line(_when(at, state.job.tz))
    if state.paused_at is not None:
        output.say(f"moot: {name} is paused; resume it with: moot cron resume {name}", "yellow")


async def run_job(name: Name, /, *, shown: ShowFlags = NO_SHOW, output: Out) -> int:
    """Run a job in the foreground."""
    show = make_show(shown, output)
    async with opened(output) as engine:
        state = await engine.cron.of(LOCAL_USER).get(name)
        if state.error:
            raise UsageError(state.error)
        record = await engine.cron.run_now(state, shown=True)
        if record.run is None and record.status in ("finished", "failed"):
            if shown.form() != "text":
                output.json(record_json(record))
            elif record.status == "failed":
                output.say(record.reason, "red")
            else:
                output.line(record.reason)
            return int(record.status == "failed")
        if record.run is None or record.conversation is None:
            output.say("moot: stored the prompt without running it", "dim")
            return 0
        run = await engine.store.records.run(record.run)
        conversation = await engine.store.conversations.get(record.conversation)
        if run.status == "queued":
            output.say("moot: queued behind another run", "dim")
        code = await Follower(engine, output, show).follow(run, conversation, run.first_seq - 1)
        ended = await engine.cron.record(record.due)
        if ended.run_status in ("finished", "failed", "cancelled"):
            await engine.cron.finish(ended, shown=True)
        return code


async def pause_job(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Pause a job until it is resumed."""
    await _pause(name, True, json, output)


async def resume_job(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Resume a paused job. Runs that were due during the pause are skipped."""
    await _pause(name, False, json, output)


async def _pause(name: str, paused: bool, json: bool, output: Out) -> None:
    async with _jobs(output) as jobs:
        await jobs.pause(name, paused=paused)
        view = await job_view(jobs, name)
    words = f"paused {name}" if paused else f"resumed {name}; next run: {_when(view.next, view.state.job.tz)}"
    write_done(output, json, view.to_json(), words)


async def remove_job(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Remove a job."""
    async with _jobs(output) as jobs:
        await jobs.remove(name)
    write_done(output, json, {"name": name, "removed": True}, f"removed {name}")


async def history(
    name: Annotated[str | None, Parameter(help="Name of the job. Defaults to all jobs.")] = None,
    /,
    *,
    limit: Limit = 50,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the runs of one job or of all jobs, newest first."""
    async with _jobs(output) as jobs:
        found = await jobs.history(name, limit=limit)
        zones = {state.job.name: state.job.tz for state in await jobs.list()}
    if json:
        output.json({"data": records_json(found), "next_cursor": None})
        return
    rows: list[list[str]] = []
    for record in found:
        cost = "-" if record.cost is None else f"${record.cost / 1e9:.4f}"
        at, place = _when(record.due.at, zones.get(record.due.job, "UTC")), (record.conversation or "-")[:13]
        rows.append([record.due.job, at, record.outcome, place, cost, reason_of(record).partition("\n")[0]])
    if rows:
        print_table(output, ["JOB", "TIME", "STATUS", "CONVERSATION", "COST", "NOTE"], rows)
    else:
        output.say("moot: no runs yet", "dim")


def _row(view: JobView) -> list[str]:
    job = view.state.job
    next_run = view.state.error or ("paused" if view.state.paused_at is not None else _when(view.next, job.tz))
    return [job.name, schedule_of(job), next_run, _last(view), job.prompt]


def _last(view: JobView) -> str:
    return "never" if view.last is None else f"{record_json(view.last)['status']} {age(view.last.due.at, time.time())} ago"


def _when(at: int | None, tz: str) -> str:
    """Format a timestamp in milliseconds in the time zone of its job."""
    return "never" if at is None else f"{datetime.fromtimestamp(at / 1000, ZoneInfo(tz)):%a %Y-%m-%d %H:%M:%S %Z}"
