"""The commands of `moot tasks`."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date
from typing import Annotated, cast

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter
from moot.cli.console.format import moment, parse_time, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.plain import confirm
from moot.errors import NeedsApproval, UsageError
from moot.guard.hidden import spelled_out
from moot.store import open_store
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Project
from moot.types.ids import new_id
from moot.types.store import OwnerStore
from moot.types.task import STATUSES, Author, Task, TaskChange, TaskComment, TaskFilter, TaskRun, TaskStatus
from moot.types.token import LOCAL_USER

Number = Annotated[str, Parameter(metavar="NUMBER", help="Number of the task, such as 12.")]
OfProject = Annotated[
    str | None,
    Parameter(name=("--project", "-p"), metavar="PROJECT", help="Name or id of the project. Defaults to this directory's project."),
]
Title = Annotated[str | None, Parameter(metavar="TITLE", help="New title.")]
Description = Annotated[str | None, Parameter(metavar="TEXT", help="Description in Markdown.")]
Tag = Annotated[tuple[str, ...] | None, Parameter(name="--tag", metavar="TAG", help="Tag. May be repeated.")]
Assignee = Annotated[str | None, Parameter(metavar="NAME", help="Agent or person to assign the task to.")]
Due = Annotated[str | None, Parameter(metavar="DATE", help="Due date, such as 2026-12-24.")]

ME = Author(LOCAL_USER)


@asynccontextmanager
async def _opened(output: Out, project: str | None) -> AsyncGenerator[tuple[OwnerStore, Project], None]:
    async with await open_store(configured(output).settings) as store:
        own = store.of(LOCAL_USER)
        yield own, await own.projects.get(project) if project else await own.projects.around(str(here()))


async def list_tasks(
    *words: Annotated[str, Parameter(metavar="WORD", help="Only tasks whose title or description contains these words.")],
    project: OfProject = None,
    all_projects: Annotated[bool, Parameter(name=("--all-projects", "-A"), help="List the tasks of all projects.")] = False,
    status: Annotated[TaskStatus | None, Parameter(metavar="STATUS", help="Only tasks with this status.")] = None,
    tag: Annotated[
        tuple[str, ...] | None, Parameter(name="--tag", metavar="TAG", help="Only tasks with this tag. May be repeated.")
    ] = None,
    author: Annotated[str, Parameter(metavar="NAME", help="Only tasks that were added by this agent or person.")] = "",
    assignee: Annotated[str, Parameter(metavar="NAME", help="Only tasks that are assigned to this agent or person.")] = "",
    overdue: Annotated[bool, Parameter(help="Only tasks that are overdue.")] = False,
    since: Annotated[
        str | None,
        Parameter(metavar="TIME", help="Only tasks changed since a date such as 2026-01-31, or within a period such as 12h or 7d."),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print tasks, sorted by status and then by age, newest first."""
    if all_projects and project is not None:
        raise UsageError("--project and --all-projects cannot be used together.")
    today = date.today().isoformat()
    conditions = TaskFilter(
        (status,) if status else (),
        tag or (),
        author,
        assignee,
        " ".join(words),
        parse_time(since) if since else 0,
        overdue_on=today if overdue else "",
    )
    async with _opened(output, project) as (store, found):
        page = await store.tasks.list(None if all_projects else found.id, conditions, limit=limit, cursor=cursor)
        names = {found.id: found.name}
        for task in page.items:
            if task.project not in names:
                names[task.project] = (await store.projects.get(task.project)).name
    if json:
        output.json({"data": list[Json]([_facts(task) for task in page.items]), "next_cursor": page.next_cursor})
        return
    if page.items:
        head = ["NUMBER", "STATUS", "DUE", "ASSIGNEE", "TAGS", "TITLE"]
        rows = [_row(task, today) for task in page.items]
        if all_projects:
            head, rows = ["PROJECT", *head], [[names[task.project], *row] for task, row in zip(page.items, rows, strict=True)]
        print_table(output, head, rows)
    else:
        where = "" if all_projects else f" in the project {found.name!r}"
        output.say(f"moot: no tasks{where}; add one with: moot tasks add TITLE", "dim")
    if page.next_cursor:
        output.say(f"moot: next page: --cursor {page.next_cursor}", "dim")


async def add_task(
    title: Annotated[str, Parameter(help="Title of the task.")],
    /,
    *,
    project: OfProject = None,
    description: Description = None,
    status: Annotated[TaskStatus, Parameter(metavar="STATUS", help="Initial status.")] = "backlog",
    tag: Tag = None,
    assignee: Assignee = None,
    due: Due = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Add a task."""
    fields = _fields(description=description, status=status, tags=tag, assignee=assignee, due=due)
    async with _opened(output, project) as (store, found):
        task = await store.tasks.create(Task(new_id(), found.id, title), ME, fields)
    _report(output, json, "added", task, found)


async def show_task(number: Number, /, *, project: OfProject = None, limit: Limit = 20, json: AsJson = False, output: Out) -> None:
    """Print a task with its newest comments and its history."""
    async with _opened(output, project) as (store, found):
        task = await store.tasks.get(found.id, number)
        comments = (await store.tasks.comments(found.id, task.id, limit=limit)).items[::-1]
        changes, runs = await store.tasks.history(found.id, task.id, limit=limit)
    if json:
        more: JsonObject = {
            "comment_list": list[Json]([_comment(comment) for comment in comments]),
            "history": list[Json]([_change(change) for change in changes]),
            "runs": list[Json]([_run(run) for run in runs]),
        }
        output.json(_facts(task) | more)
        return
    facts = {**_facts(task), "project": found.name, "created": moment(task.created_at), "updated": moment(task.updated_at)}
    output.line(output.styled(spelled_out(f"#{task.number} {task.title}"), "bold"))
    for name in ("project", "status", "due", "assignee", "tags", "author", "created", "updated"):
        value = ", ".join(task.tags) if name == "tags" else str(facts[name] or "")
        overdue = " (overdue)" if name == "due" and task.is_overdue(date.today().isoformat()) else ""
        if value:
            output.line(f"{name}: {spelled_out(value)}{overdue}")
    if task.description:
        output.line(f"\n{spelled_out(task.description.rstrip())}")
    hidden = task.comments - len(comments)
    if hidden > 0:
        output.line(output.styled(f"\n{hidden:,} older comments; show more with --limit", "dim"))
    for comment in comments:
        output.line(output.styled(f"\n{spelled_out(comment.author)}, {moment(comment.at)}", "bold"))
        output.line(spelled_out(comment.text.rstrip()))
    output.line(output.styled("\nHistory", "bold"))
    for at, line in sorted([*((change.at, _line(change)) for change in changes), *((run.at, _started(run)) for run in runs)]):
        output.line(spelled_out(f"{moment(at)}  {line}"))


async def edit_task(
    number: Number,
    /,
    *,
    project: OfProject = None,
    title: Title = None,
    description: Description = None,
    status: Annotated[TaskStatus | None, Parameter(metavar="STATUS", help="New status.")] = None,
    tag: Annotated[
        tuple[str, ...] | None,
        Parameter(name="--tag", metavar="TAG", help="New tag. The current tags are replaced by those you specify. May be repeated."),
    ] = None,
    no_tags: Annotated[bool, Parameter(help="Remove all tags.")] = False,
    assignee: Annotated[
        str | None, Parameter(metavar="NAME", help="Agent or person to assign the task to. An empty value unassigns the task.")
    ] = None,
    due: Annotated[str | None, Parameter(metavar="DATE", help="Due date, such as 2026-12-24. An empty value removes it.")] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Change the given fields of a task."""
    if no_tags and tag:
        raise UsageError("--tag and --no-tags cannot be used together.")
    tags = () if no_tags else tag
    fields = _fields(title=title, description=description, status=status, tags=tags, assignee=assignee, due=due)
    if not fields:
        raise UsageError("No changes were specified.", fix="For example: moot tasks edit NUMBER --title TITLE")
    async with _opened(output, project) as (store, found):
        task = await store.tasks.update(found.id, number, fields, ME)
    _report(output, json, "changed", task, found)


async def move_task(
    *words: Annotated[str, Parameter(metavar="NUMBER… STATUS", help="Task numbers, followed by the new status.")],
    project: OfProject = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Change the status of one or more tasks."""
    if len(words) < 2 or words[-1] not in STATUSES:
        raise UsageError(f"Expected task numbers and a status: {', '.join(STATUSES)}.", fix="For example: moot tasks move 12 done")
    *numbers, status = words
    async with _opened(output, project) as (store, found):
        for number in numbers:  # check that all tasks exist before changing any
            await store.tasks.get(found.id, number)
        tasks = [await store.tasks.update(found.id, number, {"status": status}, ME) for number in numbers]
    if json:
        output.json({"data": list[Json]([_facts(task) for task in tasks])})
        return
    for task in tasks:
        _report(output, False, f"moved to {status}:", task, found)


async def comment_on_task(
    number: Number,
    text: Annotated[str, Parameter(metavar="TEXT", help="Comment in Markdown.")],
    /,
    *,
    project: OfProject = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Comment on a task."""
    async with _opened(output, project) as (store, found):
        comment = await store.tasks.comment(found.id, number, text, ME)
        task = await store.tasks.get(found.id, number)
    write_done(output, json, _comment(comment), _words("commented on", task, found))


async def remove_task(
    number: Number,
    /,
    *,
    project: OfProject = None,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Permanently remove a task with its comments."""
    async with _opened(output, project) as (store, found):
        task = await store.tasks.get(found.id, number)
        if not yes and not await _confirmed(f"Remove task #{task.number} {task.title!r}?", output):
            output.say("moot: the task was not removed", "dim")
            return 1
        await store.tasks.remove(found.id, task.id)
    _report(output, json, "removed", task, found)
    return 0


async def _confirmed(question: str, output: Output) -> bool:
    """Ask the user to confirm. Raise NeedsApproval if they cannot be asked."""
    if not (sys.stdin.isatty() and output.stderr_terminal):
        raise NeedsApproval(f"{question} This needs confirmation.", fix="Use --yes.")
    return await confirm(question, output)


def _fields(**given: str | tuple[str, ...] | None) -> JsonObject:
    """Return the given fields as JSON, without those that are None."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value is not None}


def _report(output: Output, json: bool, verb: str, task: Task, project: Project) -> None:
    write_done(output, json, _facts(task), _words(verb, task, project))


def _words(verb: str, task: Task, project: Project) -> str:
    return f"{verb} #{task.number} {spelled_out(task.title)!r} in the project {project.name!r}"


def _row(task: Task, today: str) -> list[str]:
    due = f"{task.due} overdue" if task.is_overdue(today) else task.due
    return [f"#{task.number}", task.status, due or "-", task.assignee or "-", ", ".join(task.tags) or "-", spelled_out(task.title)]


_NAMES = (
    "id",
    "number",
    "project",
    "title",
    "description",
    "status",
    "assignee",
    "author",
    "comments",
    "created_at",
    "updated_at",
    "version",
)


def _facts(task: Task) -> JsonObject:
    facts: JsonObject = {name: cast("Json", getattr(task, name)) for name in _NAMES}
    overdue = task.is_overdue(date.today().isoformat())
    facts.update({"tags": list[Json](task.tags), "due": task.due or None, "overdue": overdue})
    return facts


def _comment(comment: TaskComment) -> JsonObject:
    return {"id": comment.id, "author": comment.author, "run": comment.run, "text": comment.text, "at": comment.at}


def _change(change: TaskChange) -> JsonObject:
    names = ("event", "before", "status", "author", "run", "at")
    return {**{name: cast("Json", getattr(change, name)) for name in names}, "fields": list[Json](change.fields)}


def _run(run: TaskRun) -> JsonObject:
    return {name: cast("Json", getattr(run, name)) for name in ("watcher", "at", "status", "reason", "run", "conversation")}


def _line(change: TaskChange) -> str:
    return f"{change.description}, by {change.author}"


def _started(run: TaskRun) -> str:
    if run.reason:
        return f"watcher {run.watcher} could not start: {run.reason}"
    return f"watcher {run.watcher} started a run: {run.status or 'deleted'}, conversation {(run.conversation or '')[:13]}"
