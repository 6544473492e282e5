"""cron and deliver: manage cron jobs, and deliver a text from a job's run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from moot.errors import UsageError
from moot.tools.basics import BaseTool, count, title
from moot.types.canonical import Json, JsonObject
from moot.types.cron import JobState
from moot.types.tool import ToolContext, ToolOutput, View

_DONE = {"add": "Added", "pause": "Paused", "resume": "Resumed"}


class CronArguments(BaseModel):
    action: Literal["list", "add", "pause", "resume", "remove"]
    name: str = Field(default="", max_length=64, description="Name of the job")
    prompt: str = Field(default="", max_length=100_000, description="To add: the prompt to run, complete in itself")
    cron: str = Field(default="", max_length=200, description='To add: five fields, such as "0 9 * * 1-5"')
    every: str = Field(default="", max_length=20, description="To add: an interval of at least 60s, such as 5m or 2h")
    at: str = Field(default="", max_length=40, description="To add: one date and time, such as 2026-12-24T18:00")
    tz: str = Field(default="", max_length=60, description="To add: time zone, such as Europe/Berlin; empty = this machine's")
    here: bool = Field(default=False, description="To add: run in this conversation, not in one of the job's own")


class Cron(BaseTool):
    """The `cron` tool. A job gets at most the rights of the run that adds it."""

    name = "cron"
    description = "List, add, pause, resume or remove cron jobs: prompts that run at set times."
    arguments = CronArguments
    hidden = True
    needs_folder = False
    effects = frozenset({"write", "network"})  # so that the user is asked about new jobs in mode `edits` too
    reads = frozenset({"list"})

    async def call(self, arguments: CronArguments, context: ToolContext) -> ToolOutput:
        jobs, name = context.services.jobs, arguments.name
        if arguments.action == "list":
            found = await jobs.list()
            value: list[Json] = [_job_json(state) for state in found]
            return ToolOutput("\n".join(map(_line, found)) or "There are no jobs.", value)
        if not name:
            raise UsageError("A name is required.")
        if arguments.action == "remove":
            await jobs.remove(name)
            return ToolOutput(f"Removed {name}.")
        if arguments.action == "add":
            values: JsonObject = {"prompt": arguments.prompt, "conversation": "here" if arguments.here else None}
            values |= {key: given for key in ("cron", "every", "at", "tz") if (given := getattr(arguments, key))}
            state = await jobs.add(name, values)
        else:
            state = await jobs.pause(name, paused=arguments.action == "pause")
        return ToolOutput(f"{_DONE[arguments.action]} {_line(state)}", _job_json(state))

    def doing(self, arguments: CronArguments) -> View:
        if arguments.action == "list":
            return View("List cron jobs")
        return View(title(f"{arguments.action.capitalize()} the cron job", arguments.name), _times(arguments), arguments.prompt, "markdown")

    def done(self, arguments: CronArguments, output: ToolOutput) -> View:
        found = len(output.value) if isinstance(output.value, list) else 0
        doing = self.doing(arguments)
        return View("Listed cron jobs", count(found, "job"), output.text) if arguments.action == "list" else doing


def _times(arguments: CronArguments) -> str:
    return " ".join(filter(None, (arguments.cron, arguments.every and f"every {arguments.every}", arguments.at, arguments.tz)))


def _line(state: JobState) -> str:
    job = state.job
    when = job.cron or (f"every {job.every:g} s" if job.every else f"at {job.at}")
    return f"{job.name}: {when} ({job.tz}){', paused' if state.paused_at is not None else ''}: {' '.join(job.prompt.split())[:120]}"


def _job_json(state: JobState) -> Json:
    job = state.job
    return {"name": job.name, "cron": job.cron, "every": job.every, "at": job.at, "tz": job.tz, "paused": state.paused_at is not None}


class DeliverArguments(BaseModel):
    text: str = Field(min_length=1, max_length=100_000, description="The text to deliver")


class Deliver(BaseTool):
    """The `deliver` tool, for jobs that deliver only the texts of its calls. When the run ends, the text is read from the call."""

    name = "deliver"
    description = "Send a text to the person who set up this job. Without a call, nothing is sent."
    arguments = DeliverArguments
    concurrent = True
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"read"})

    async def call(self, arguments: DeliverArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput("It will be delivered when you are done.")

    def doing(self, arguments: DeliverArguments) -> View:
        return View("Deliver a text", body=arguments.text, language="markdown")

    def done(self, arguments: DeliverArguments, output: ToolOutput) -> View:
        return View("Delivered a text", body=arguments.text, language="markdown")
