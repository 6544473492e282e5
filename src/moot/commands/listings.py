"""Slash commands that show and change permissions, memory, MCP servers, tasks and cron jobs, and check the state of moot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio.to_thread

from moot import __version__
from moot.commands.command import BaseCommand, Choice, CommandContext, Notice, Reply
from moot.config.changes import set_value
from moot.config.loader import FILE
from moot.errors import MootError, NotFound, UsageError
from moot.features.cron import JobView, job_views, reason_of, schedule_of
from moot.guard.hidden import spelled_out
from moot.mcp.servers import check_configured
from moot.plugins.registry import hint
from moot.runtime.approvals.policy import grant_json, rule_text
from moot.runtime.approvals.sandbox import find_mechanism
from moot.runtime.cron import OwnerJobs
from moot.runtime.setup import mode_of
from moot.tools.memory import INDEX, Memory, memory_folders
from moot.types.ids import new_id
from moot.types.task import Author, Task, TaskFilter
from moot.types.token import LOCAL_USER

_LISTED = 20
"""Maximum number of tasks to list."""


def _require_owner(context: CommandContext, name: str) -> None:
    if context.owner != LOCAL_USER:
        raise UsageError(f"Only the person who runs moot can use /{name}.")


class PermissionsCommand(BaseCommand):
    help = "Show the permission mode, the rules, and the grants of this conversation"
    category = "settings"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        settings, conversation = context.engine.runtime.settings, await context.current()
        mode = context.overrides.mode or mode_of(settings, {}, conversation)
        lines = [f"Mode: {mode}"]
        lines += [spelled_out(rule_text(rule)) for rule in settings.permissions.rules]
        grants = conversation.grants if conversation is not None else ()
        lines += [spelled_out("allowed for this conversation: {tool} {match!r}".format(**grant_json(grant))) for grant in grants]
        return [Notice("\n".join(lines if len(lines) > 1 else [*lines, "There are no rules."]))]


class MemoryCommand(BaseCommand):
    help = "List the memory files, or add a line to memory"
    argument = "[TEXT]"
    category = "project"
    examples = ("/memory The staging server is called heron.",)

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        folder, is_local = await context.folder(), context.owner == LOCAL_USER
        memory = Memory(memory_folders(context.engine.settings.home, "", folder, is_local=is_local, boundary=folder))
        if argument:
            return [Notice(await anyio.to_thread.run_sync(_remember, memory, argument), "dim")]
        files = await anyio.to_thread.run_sync(memory.files)
        lines = [f"{file.name}  {file.size:,} bytes{f'  {file.problem}' if file.problem else ''}" for file in files]
        return [Notice("\n".join(lines) or "There is no memory yet. Add some with /memory TEXT.")]


def _remember(memory: Memory, text: str) -> str:
    """Append a line to the nearest memory index. Return a message saying what was done."""
    name = f"{memory.folders[-1].name}/{INDEX}" if memory.folders else ""
    if not name:
        raise UsageError("This conversation has no folder for memory.")
    memory.write(name, f"- {' '.join(text.split())}\n", append=True)
    return f"Added to {name}."


class McpCommand(BaseCommand):
    help = "Show the MCP servers, or enable or disable one"
    argument = "[enable|disable NAME]"
    category = "settings"
    examples = ("/mcp", "/mcp disable git")

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        servers = context.engine.runtime.settings.mcp.values()
        return [Choice(f"{'disable' if server.enabled else 'enable'} {server.name}") for server in servers]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        _require_owner(context, "mcp")
        settings = context.engine.runtime.settings
        verb, _, name = argument.partition(" ")
        if argument:
            if verb not in ("enable", "disable") or not name.strip():
                raise UsageError(f"Invalid argument {argument!r}.", fix="Use /mcp, /mcp enable NAME or /mcp disable NAME.")
            if (name := name.strip()) not in settings.mcp:
                raise NotFound(f"MCP server {name!r} not found.{hint(name, list(settings.mcp))}", fix="Use /mcp to list the servers.")
            check_configured(settings.mcp[name])
            await anyio.to_thread.run_sync(set_value, settings.home / FILE, f"mcp.{name}.enabled", verb == "enable", os.environ)
            return [Notice(f"MCP server {name} {verb}d.", "dim")]
        servers = context.engine.runtime.mcp
        if servers is None or not settings.mcp:
            return [Notice("There are no MCP servers. Add one with: moot mcp add NAME -- COMMAND")]
        rows = servers.status(settings.mcp.values())
        width = max(len(row.server.name) for row in rows) + 2
        lines = [f"{row.server.name:{width}}{row.state}, {len(row.tools)} tools{f': {row.error}' if row.error else ''}" for row in rows]
        return [Notice(spelled_out("\n".join(lines)))]


class TasksCommand(BaseCommand):
    help = "List the project's open tasks, or add one"
    argument = "[add TITLE]"
    category = "project"
    examples = ("/tasks", "/tasks add Update the changelog")

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.current()
        chosen = conversation.project if conversation is not None else context.project
        project = chosen or (await context.store.projects.around(context.directory)).id
        verb, _, title = argument.partition(" ")
        if verb == "add" and title.strip():
            task = await context.store.tasks.create(Task(new_id(), project, title=title.strip()), Author(context.owner))
            return [Notice(f"Added task #{task.number}: {task.title}", "dim")]
        if argument:
            raise UsageError(f"Invalid argument {argument!r}.", fix="Use /tasks or /tasks add TITLE.")
        page = await context.store.tasks.list(project, TaskFilter(("backlog", "in_progress", "blocked", "in_review")), limit=_LISTED)
        lines = [f"#{task.number}  {task.status:<12}{task.title}" for task in page.items]
        return [Notice(spelled_out("\n".join(lines)) or "There are no open tasks. Add one with /tasks add TITLE.")]


class CronCommand(BaseCommand):
    help = "Show the cron jobs, or run, pause or resume one"
    argument = "[run|pause|resume NAME]"
    category = "runtime"
    examples = ("/cron", "/cron run nightly")

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice(f"run {view.state.job.name}") for view in await job_views(self._jobs(context))]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        jobs = self._jobs(context)
        verb, _, name = argument.partition(" ")
        if not argument:
            views = await job_views(jobs)
            return [Notice(spelled_out("\n".join(map(_job_line, views))) or "There are no cron jobs. Add one with: moot cron add")]
        if not name.strip() or verb not in ("run", "pause", "resume"):
            raise UsageError(f"Invalid argument {argument!r}.", fix="Use /cron, or /cron run, pause or resume NAME.")
        state = await jobs.get(name.strip())
        if verb == "run":
            record = await context.engine.cron.run_now(state, shown=True)
            if record.run is None and record.status in ("finished", "failed"):
                return [Notice(spelled_out(record.reason), "red" if record.status == "failed" else "")]
            return [Notice(f"Started {state.job.name}. Its answer goes to the conversation {record.conversation}.", "dim")]
        await jobs.pause(state.job.name, paused=verb == "pause")
        return [Notice(f"Job {state.job.name} {verb}d.", "dim")]

    @staticmethod
    def _jobs(context: CommandContext) -> OwnerJobs:
        runtime = context.engine.runtime
        return OwnerJobs(lambda: runtime.settings, runtime.store, context.owner)


def _job_line(view: JobView) -> str:
    job, last = view.state.job, view.last
    following = "paused" if view.state.paused_at is not None else "no further run"
    if view.next is not None:
        following = f"next {datetime.fromtimestamp(view.next / 1000, UTC).astimezone():%Y-%m-%d %H:%M}"
    result = f", last {last.outcome}{f': {reason_of(last)}' if reason_of(last) else ''}" if last is not None else ""
    return f"{job.name}  {schedule_of(job)}, {following}{result}"


class DoctorCommand(BaseCommand):
    help = "Check the database, model, sandbox and MCP servers"
    category = "information"

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        _require_owner(context, "doctor")
        engine, settings = context.engine, context.engine.runtime.settings
        health, found = await engine.store.health(), await find_mechanism(engine.runtime)
        missing = f" ({'; '.join(found.missing)})"
        lines = [
            f"moot        {__version__}, home {settings.home}",
            f"database    integrity {health['integrity']}, {health['conversations']} conversations, {health['messages']} messages",
            f"model       {await _model_state(context)}",
            f"sandbox     {found.mechanism or 'none'}{'' if found.is_complete else missing}",
        ]
        if engine.runtime.mcp is not None:
            problems = engine.runtime.mcp.problems(settings.mcp.values())
            lines += [f"MCP server  {name}: {problem}" for name, problem in problems.items()]
        return [Notice("\n".join([*lines, "For all checks, run: moot doctor"]))]


async def _model_state(context: CommandContext) -> str:
    try:
        choice = await context.engine.providers.choice(context.overrides.model or "main")
    except MootError as error:
        return error.advice()
    return f"{choice.model.id} is available"
