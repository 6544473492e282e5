"""shell: run a command in the conversation's folder, in the foreground or the background."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from moot.errors import FenceLost, MootError, Refused, StoreFull
from moot.guard.processes import child_environment
from moot.tools.basics import BaseTool, ToolSettings, error_text, paths_of, title
from moot.tools.jobs import KEPT_BYTES, Job, Jobs, drain, hint_of, shown_output, start
from moot.types.canonical import JsonObject
from moot.types.command_tool import CommandTool
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.sandbox import Access, Confinement
from moot.types.tool import ToolContext, ToolOutput, View

SECONDS = 120.0
MAX_SECONDS = 3600.0
REPORTED_CHARACTERS = 2000


class ShellArguments(BaseModel):
    command: str = Field(default="", max_length=100_000, description="Command to run; may have many lines")
    timeout: float = Field(default=SECONDS, gt=0, le=MAX_SECONDS, description="Seconds until it is killed")
    background: bool = Field(default=False, description="Return an id at once and keep running")
    access: Access = Field(default="sandbox", description="If the sandbox made it fail: network or outside, which asks the user")
    action: Literal["run", "status", "output", "kill"] = Field(default="run", description="All except run apply to background commands")
    id: str = Field(default="", description="Id of a background command")


class ShellSettings(ToolSettings):
    environment: tuple[str, ...] = ()
    """Names of additional environment variables to pass to commands."""
    kept_bytes: int = Field(default=KEPT_BYTES, ge=0)
    """Size in bytes up to which output is kept completely. For longer output, this much of the start and the end are kept."""


class Shell(BaseTool):
    """The `shell` tool. Commands run in bash, with empty input and few environment variables."""

    name = "shell"
    description = (
        "Run a shell command and get its output. It has no input and no terminal. When it exits, all processes it started are killed, "
        "so run servers with background=true."
    )
    arguments = ShellArguments
    settings = ShellSettings
    effects = frozenset({"execute"})

    async def call(self, arguments: ShellArguments, context: ToolContext) -> ToolOutput:
        jobs = context.kept("jobs", Jobs)
        if arguments.action != "run":
            return await _look(arguments, jobs, context)
        if not arguments.command.strip():
            raise Refused("The command is empty.")
        settings = ShellSettings.of(self.name, context.settings)
        env = child_environment(settings.environment)
        sandbox = await context.confinement(arguments.command, arguments.access)
        job = await start(
            arguments.command, cwd=context.directory, env=env, note=context.note, kept_bytes=settings.kept_bytes, sandbox=sandbox
        )
        if arguments.background:
            id = await jobs.add(job)
            text = f"Running in the background with id {id}. Read its output with action=output, stop it with action=kill."
            return ToolOutput(text, {"id": id})
        with closing(job.spool):
            return await foreground(
                job, context, arguments.timeout, advice="run it again with access=network or access=outside; the user is asked"
            )

    def doing(self, arguments: ShellArguments) -> View:
        if arguments.action != "run":
            return View(title("Shell", f"{arguments.action} {arguments.id}"))
        line = title("$", arguments.command)
        whole = line == f"$ {arguments.command}"
        details = (_ACCESS[arguments.access], "in the background" if arguments.background else "")
        return View(line, ", ".join(filter(None, details)), "" if whole else arguments.command, "bash")


_ACCESS: dict[Access, str] = {"sandbox": "", "network": "with the network", "outside": "outside the sandbox"}


async def run_template(template: CommandTool, line: str, context: ToolContext) -> ToolOutput:
    """Run the command of a custom tool. An error becomes a failed output, unless the run can't continue."""
    try:
        folder = _folder(template.cwd, context)
        sandbox = await context.confinement(line, "network" if template.network else "sandbox")
        if template.read_only:
            sandbox = _read_only(sandbox)
        if sandbox is not None and template.cwd:
            sandbox = replace(sandbox, directory=folder)
        env = {**child_environment(), **template.env}
        job = await start(line, cwd=folder, env=env, note=context.note, sandbox=sandbox)
        with closing(job.spool):
            return await foreground(job, context, template.timeout, limit=template.max_output, advice="tell the user")
    except (FenceLost, StoreFull):
        raise
    except (MootError, OSError) as error:
        return ToolOutput(error_text(error), error=True)


def _read_only(sandbox: Confinement | None) -> Confinement:
    if sandbox is None:
        raise Refused("A tool with `read_only` needs the sandbox, which is turned off or not available.", fix="Run 'moot doctor'.")
    return sandbox.read_only()


def _folder(cwd: str, context: ToolContext) -> Path:
    """Return the working directory of a custom tool. Raise Refused if it is not a folder or is outside the conversation's folders."""
    if not cwd:
        return context.directory
    found = paths_of(context).resolve(cwd)
    if not found.is_dir():
        raise Refused(f"The tool's working directory {cwd!r} is not a folder.")
    return found


async def foreground(job: Job, context: ToolContext, seconds: float, *, limit: int = TOOL_OUTPUT_CHARACTERS, advice: str) -> ToolOutput:
    """Wait for a command to end. Return its output, shortened to the limit.

    `advice` says what to do if the sandbox made the command fail.
    """
    reporting = asyncio.create_task(_report(job, context))
    try:
        async with asyncio.timeout(seconds):
            await drain(job)
    except TimeoutError:
        job.stop_reason = f"killed after {seconds:g} seconds"
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
    text, whole = await shown_output(job.spool, context.blobs, limit)
    value: JsonObject = {"exit_code": job.code}
    if job.code == 0:
        return ToolOutput("\n".join([text or "(no output)", *job.findings]), value, whole=whole, empty=not text and not job.findings)
    hint = hint_of(text, job.sandbox, advice) if job.sandbox is not None else ""
    lines = (text, f"({job.state})", *job.findings, hint)
    return ToolOutput("\n".join(filter(None, lines)), value, error=True, whole=whole)


async def _report(job: Job, context: ToolContext) -> None:
    """Report the last output of a long-running command, at increasing intervals."""
    pause, reported = 2.0, 0
    while True:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 30.0)
        if job.spool.total > reported:
            reported = job.spool.total
            await context.report(job.spool.end(REPORTED_CHARACTERS).decode("utf-8", "replace"))


async def _look(arguments: ShellArguments, jobs: Jobs, context: ToolContext) -> ToolOutput:
    if arguments.action == "status" and not arguments.id:
        lines = [f"{id}: {job.state}: {job.command}" for id, job in jobs.jobs.items()]
        return ToolOutput("\n".join(lines) or "There are no background commands.")
    job = jobs.jobs.get(arguments.id)
    if job is None:
        known = ", ".join(jobs.jobs) or "none"
        raise Refused(f"No background command has the id {arguments.id!r}. Known ids: {known}. Commands stop when moot exits.")
    if arguments.action == "kill":
        await jobs.end(job)
    if arguments.action == "output":
        state = job.state  # read first: if the command ends while the output is read, the output may be incomplete
        value: JsonObject = {"exit_code": job.code}
        text, whole = await shown_output(job.spool, context.blobs)
        return ToolOutput("\n".join(filter(None, (text, f"({state})", *job.findings))), value, whole=whole)
    return ToolOutput(f"{arguments.id}: {job.state}")
