"""Tasks of projects, their comments and history."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Path, Query, Request, Response
from pydantic import Field

from moot.server.auth import Chatter, Reader, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out
from moot.server.resources import LATEST, Cursor, IfMatch, Limit, check_match, page_out, tagged
from moot.types.ids import new_id
from moot.types.task import (
    COMMENT_CHARACTERS,
    DEEPEST,
    DESCRIPTION_CHARACTERS,
    NAME_CHARACTERS,
    TAG_CHARACTERS,
    TAGS,
    TITLE_CHARACTERS,
    Author,
    Task,
    TaskChange,
    TaskComment,
    TaskFilter,
    TaskRun,
    TaskStatus,
)

Tag: TypeAlias = Annotated[str, Field(min_length=1, max_length=TAG_CHARACTERS)]
Title: TypeAlias = Annotated[str, Field(min_length=1, max_length=TITLE_CHARACTERS)]
Text: TypeAlias = Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS)]
Name: TypeAlias = Annotated[str, Field(max_length=NAME_CHARACTERS)]
Due: TypeAlias = Annotated[str, Field(max_length=10)]
Number: TypeAlias = Annotated[str, Path(max_length=128, description="Number of the task in its project, or its id.")]


class TaskOut(
    Out, of=Task, fields="id number project title description status tags assignee due author comments created_at updated_at version"
):
    """A task: a work item of a project."""

    number: int
    """Number in its project."""


class TaskIn(In):
    """A task to add."""

    title: Title
    description: Text = ""
    """Markdown."""
    status: TaskStatus = "backlog"
    tags: Annotated[list[Tag], Field(default_factory=list, max_length=TAGS)]
    assignee: Name = ""
    """Name of an agent or person; empty = no one."""
    due: Due = ""
    """ISO date, such as 2026-12-24; empty = none."""


class TaskChangeIn(In):
    """Fields to change; omitted fields are unchanged."""

    title: Title | None = None
    description: Text | None = None
    status: TaskStatus | None = None
    tags: Annotated[list[Tag], Field(max_length=TAGS)] | None = None
    assignee: Name | None = None
    """Name of an agent or person; empty = no one."""
    due: Due | None = None
    """ISO date; empty = none."""


class TaskCommentOut(Out, of=TaskComment, fields="id author text run at"):
    """A comment on a task."""


class TaskCommentIn(In):
    """A comment to add."""

    text: Annotated[str, Field(min_length=1, max_length=COMMENT_CHARACTERS)]
    """Markdown."""


class TaskChangeOut(Out, of=TaskChange, fields="event fields before status author run at"):
    """A change in a task's history."""


class TaskRunOut(Out, of=TaskRun, fields="watcher at reason run conversation status"):
    """A run that a watcher (an automatic reaction to task changes) has started for a task."""


class TaskHistoryOut(Out):
    """The latest changes to a task, and the latest runs that watchers started for it."""

    changes: list[TaskChangeOut]
    """Newest first."""
    runs: list[TaskRunOut]
    """Newest first."""


router = Router(prefix="/api/projects/{project_id}/tasks", tags=["tasks"])


async def _project(caller: Caller, id: str) -> str:
    """Return the id of the caller's project. Raise NotFound if it does not exist."""
    return (await caller.store.projects.get(id)).id


def _author(caller: Caller) -> Author:
    """Return the caller as an author.

    Watchers have more rights than the scope `chat`, so changes made with `chat` don't start watchers.
    """
    return Author(caller.owner_id, depth=0 if caller.may("tools") else DEEPEST)


def _etag(task: Task) -> str:
    return f'"{task.id}.{task.version}"'


def _tagged(response: Response, task: Task) -> TaskOut:
    response.headers["etag"] = _etag(task)
    return TaskOut.of(task)


async def _checked(caller: Caller, project: str, number: str, if_match: str | None) -> Task:
    """Return the task. Raise Problem (412) if it has changed since the caller read it."""
    found = await caller.store.tasks.get(project, number)
    check_match(if_match, _etag(found))
    return found


@router.get("")
async def list_tasks(
    caller: Reader,
    project_id: str,
    status: Annotated[list[TaskStatus] | None, Query(description="Only these statuses. Default: all except archived.")] = None,
    tag: Annotated[list[str] | None, Query(max_length=TAGS, description="Only tasks with all of these tags.")] = None,
    author: Annotated[str, Query(max_length=NAME_CHARACTERS)] = "",
    assignee: Annotated[str, Query(max_length=NAME_CHARACTERS)] = "",
    query: Annotated[str, Query(max_length=500, description="Words to find in title or description.")] = "",
    updated_after: Annotated[int, Query(ge=0, le=LATEST, description="Only tasks changed after this time, in ms.")] = 0,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListOut[TaskOut]:
    """List the tasks of a project, sorted by status, then newest first."""
    conditions = TaskFilter(status or (), tag or (), author, assignee, query, updated_after)
    page = await caller.store.tasks.list(await _project(caller, project_id), conditions, limit=limit, cursor=cursor)
    return page_out(page, TaskOut.of)


@router.post("", status_code=201)
async def add_task(caller: Chatter, attempt: CurrentAttempt, response: Response, project_id: str, body: TaskIn) -> TaskOut:
    """Add a task. With the scope `tools`, this can start runs of watchers that are defined in the configuration."""
    task = Task(attempt.id or new_id(), await _project(caller, project_id), body.title)
    return _tagged(response, await caller.store.tasks.create(task, _author(caller), body.model_dump()))


@router.get("/{task}", response_model=TaskOut)
async def get_task(caller: Reader, request: Request, project_id: str, task: Number) -> Response:
    """Get a task."""
    found = await caller.store.tasks.get(await _project(caller, project_id), task)
    return tagged(request, TaskOut.of(found), etag=_etag(found))


@router.patch("/{task}")
async def change_task(
    caller: Chatter, response: Response, project_id: str, task: Number, body: TaskChangeIn, if_match: IfMatch = None
) -> TaskOut:
    """Change a task. With the scope `tools`, this can start runs of watchers that are defined in the configuration."""
    project = await _project(caller, project_id)
    found = await _checked(caller, project, task, if_match)
    version = found.version if if_match is not None else None
    changes = body.model_dump(exclude_none=True)
    return _tagged(response, await caller.store.tasks.update(project, found.id, changes, _author(caller), version=version))


@router.delete("/{task}")
async def remove_task(caller: Chatter, project_id: str, task: Number, if_match: IfMatch = None) -> TaskOut:
    """Permanently remove a task with its comments and history."""
    project = await _project(caller, project_id)
    found = await _checked(caller, project, task, if_match)
    return TaskOut.of(await caller.store.tasks.remove(project, found.id, version=found.version if if_match is not None else None))


@router.get("/{task}/comments")
async def list_task_comments(
    caller: Reader, project_id: str, task: Number, limit: Limit = 50, cursor: Cursor = None
) -> ListOut[TaskCommentOut]:
    """List the comments on a task, newest first."""
    page = await caller.store.tasks.comments(await _project(caller, project_id), task, limit=limit, cursor=cursor)
    return page_out(page, TaskCommentOut.of)


@router.post("/{task}/comments", status_code=201)
async def comment_on_task(caller: Chatter, attempt: CurrentAttempt, project_id: str, task: Number, body: TaskCommentIn) -> TaskCommentOut:
    """Comment on a task. With the scope `tools`, this can start runs of watchers that are defined in the configuration."""
    project = await _project(caller, project_id)
    return TaskCommentOut.of(await caller.store.tasks.comment(project, task, body.text, _author(caller), id=attempt.id))


@router.get("/{task}/history")
async def get_task_history(
    caller: Reader, project_id: str, task: Number, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> TaskHistoryOut:
    """Get the latest changes to a task and the latest runs that watchers started for it."""
    changes, runs = await caller.store.tasks.history(await _project(caller, project_id), task, limit=limit)
    return TaskHistoryOut(changes=[TaskChangeOut.of(change) for change in changes], runs=[TaskRunOut.of(run) for run in runs])
