"""Tasks (work items of projects), their comments, the history of their changes, and watchers, which start runs when tasks change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

from moot.types.agent import Mode
from moot.types.canonical import JsonObject
from moot.types.conversation import Page

TaskStatus: TypeAlias = Literal["backlog", "in_progress", "blocked", "in_review", "done", "archived"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
"""All statuses, in the order in which tasks usually pass through them."""
CLOSED: frozenset[TaskStatus] = frozenset({"done", "archived"})
"""The statuses of tasks that are never overdue."""

TaskEvent: TypeAlias = Literal["created", "status", "updated", "commented"]
"""created: a new task · status: a changed status · updated: any other changed field · commented: a new comment."""
EVENTS: tuple[TaskEvent, ...] = get_args(TaskEvent)

FIELDS: tuple[str, ...] = ("title", "description", "status", "tags", "assignee", "due")
"""The fields that a change may set."""

TITLE_CHARACTERS, DESCRIPTION_CHARACTERS, COMMENT_CHARACTERS = 200, 50_000, 20_000
TAGS, TAG_CHARACTERS, NAME_CHARACTERS = 20, 50, 200

WATCHER, DEPTH = "task_watcher", "task_depth"
"""The keys in `Run.settings` of a run that a watcher started: the watcher's name, and the number of such runs that led to this one,
including itself."""

DEEPEST = 3
"""Maximum number of runs that watchers start as a consequence of each other. A change by the last of these runs starts no other run."""

VARIABLES: frozenset[str] = frozenset(
    (
        *("task.number", "task.id", "task.title", "task.description", "task.status", "task.tags", "task.author", "task.assignee"),
        *("task.due", "task.comments", "project.id", "project.name", "changes", "comment"),
    )
)
"""The variables of a watcher's prompt. `changes` contains a line for each change since the last run, `comment` the new comments."""


@dataclass(frozen=True, slots=True)
class TaskWatcher:
    """One entry of `task_watchers`: the prompt that runs when a task changes."""

    name: str
    prompt: str
    """Template with `VARIABLES` in double braces. Their values are never expanded again."""
    project: str = ""
    """Id or name of the project; empty = all projects."""
    events: frozenset[TaskEvent] = frozenset(EVENTS)
    statuses: frozenset[TaskStatus] = frozenset()
    """Only tasks that have one of these statuses when the prompt would run; empty = all."""
    tags: frozenset[str] = frozenset()
    """Only tasks with one of these tags; empty = all."""
    assignee: str = ""
    """Only tasks assigned to this name; empty = all."""
    debounce: float = 5.0
    """Seconds without further changes of the task before the prompt runs."""
    max_runs: int = 1
    """Maximum number of concurrent runs, each for a different task. Runs that wait for a person don't count."""
    fresh: bool = False
    """Start a new conversation for each run, instead of one for each task."""
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    directory: str = ""
    """Working directory; empty = the root of the task's project, or else the home folder."""
    unattended: Literal["deny", "ask"] = "deny"
    """deny: calls that need approval are denied · ask: these calls wait for a person."""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Author:
    """The person or run that makes a change."""

    name: str
    """Name of the user or of the agent."""
    run: str | None = None
    """Id of the run; None = a person."""
    watcher: str = ""
    """Name of the watcher that started this run or, for a sub-agent, its parent run; empty = none."""
    depth: int = 0
    """Number of runs started by watchers that led to this change, including `run`."""


@dataclass(frozen=True, slots=True)
class Task:
    """A work item of a project."""

    id: str
    project: str
    """Id of the project that the task belongs to."""
    title: str
    description: str = ""
    """Description in Markdown."""
    status: TaskStatus = "backlog"
    tags: tuple[str, ...] = ()
    assignee: str = ""
    """Name of an agent or person; empty = no one."""
    due: str = ""
    """Due date in ISO format, such as 2026-12-24; empty = none."""
    author: str = ""
    number: int = 0
    """Number of the task in its project, starting at 1. Set by the store."""
    comments: int = 0
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch."""
    updated_at: int = 0
    """Time of the last change or comment, in milliseconds since the epoch."""
    version: int = 1
    """Version of the task, starting at 1. Each change and each comment increases it by 1."""
    no: int = 0

    def is_overdue(self, today: str) -> bool:
        """Return True if the task is still open after its due date. `today` is an ISO date."""
        return bool(self.due) and self.due < today and self.status not in CLOSED


@dataclass(frozen=True, slots=True)
class TaskComment:
    id: str
    author: str
    text: str
    """Text in Markdown."""
    run: str | None = None
    """Id of the run that wrote the comment; None = a person wrote it."""
    at: int = 0
    """Time of the comment, in milliseconds since the epoch."""
    no: int = 0


@dataclass(frozen=True, slots=True)
class TaskChange:
    """One entry of a task's history."""

    no: int
    event: TaskEvent
    fields: tuple[str, ...]
    """Names of the changed fields; empty for a new task and a comment."""
    before: TaskStatus
    """Status before the change."""
    status: TaskStatus
    """Status after the change."""
    author: str
    run: str | None
    watcher: str
    depth: int
    at: int
    """Time of the change, in milliseconds since the epoch."""

    @property
    def description(self) -> str:
        """A description such as `status: backlog → done`, without the author."""
        if self.event not in ("status", "updated"):
            return self.event
        moved = f"status: {self.before} → {self.status}" if self.event == "status" else ""
        others = ", ".join(name for name in self.fields if name != "status")
        return "; ".join(filter(None, (moved, others and f"changed: {others}")))


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A run that a watcher started for a task, or the reason why it could not start one."""

    watcher: str
    at: int
    """Time of the attempt, in milliseconds since the epoch."""
    reason: str = ""
    """Reason why no run was started; empty if a run was started."""
    run: str | None = None
    conversation: str | None = None
    status: str | None = None
    """Current status of the run; None = there is no run, or it was deleted."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Conditions for listing tasks. A task must meet all of them."""

    statuses: Sequence[TaskStatus] = ()
    """Statuses to include; empty = all except archived."""
    tags: Sequence[str] = ()
    """Tags, all of which a task must have."""
    author: str = ""
    assignee: str = ""
    query: str = ""
    """Words that the title or description must contain, ignoring case."""
    updated_after: int = 0
    """Only tasks changed after this time, in milliseconds since the epoch; 0 = all."""
    overdue_on: str = ""
    """Only tasks that are overdue on this ISO date; empty = all."""


class Tasks(Protocol):
    """Tasks of one owner. `task` is the number in the project, such as `12` or `#12`, or the id. All methods may raise NotFound."""

    @property
    def watchers(self) -> WatcherStore:
        """The owner's watchers."""
        ...

    async def list(
        self, project: str | None, conditions: TaskFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Task]:
        """List the tasks of the project with this id, or of all projects. Tasks are sorted by status, then newest first.

        Raise UsageError for an invalid cursor.
        """
        ...

    async def count(self, project: str) -> int:
        """Return the number of tasks of a project."""
        ...

    async def get(self, project: str, task: str) -> Task: ...

    async def create(self, task: Task, by: Author, fields: JsonObject | None = None) -> Task:
        """Store a new task and return it with its number. If a task with its id exists, return that one. `fields` override those of `task`.

        Raise UsageError for invalid fields, LimitReached for too many tasks.
        """
        ...

    async def update(self, project: str, task: str, changes: JsonObject, by: Author, *, version: int | None = None) -> Task:
        """Set the given fields, whose names are in `FIELDS`. If nothing changes, nothing is stored.

        Raise UsageError for invalid fields, Busy if the task's version is not `version`.
        """
        ...

    async def comment(self, project: str, task: str, text: str, by: Author, *, id: str = "") -> TaskComment:
        """Add a comment. Raise UsageError for an invalid text, LimitReached for too many comments."""
        ...

    async def comments(self, project: str, task: str, *, limit: int = 50, cursor: str | None = None) -> Page[TaskComment]:
        """Return comments, newest first. Raise UsageError for an invalid cursor."""
        ...

    async def history(self, project: str, task: str, *, limit: int = 50) -> tuple[list[TaskChange], list[TaskRun]]:
        """Return the latest changes, and the latest runs that watchers started, newest first."""
        ...

    async def remove(self, project: str, task: str, *, version: int | None = None) -> Task:
        """Delete a task with its comments and history, and return it. Raise Busy if the task's version is not `version`."""
        ...


class ProjectTasks(Protocol):
    """The tasks of a conversation's project, for use by tools."""

    async def list(self, conditions: TaskFilter, *, limit: int) -> tuple[list[Task], bool]:
        """Return the first tasks that meet the conditions, and True if there are more."""
        ...

    async def get(self, task: str) -> Task:
        """Return a task by its number. Like the other methods, raise NotFound if there is no such task."""
        ...

    async def comments(self, task: str, *, limit: int) -> list[TaskComment]:
        """Return the newest comments, oldest first."""
        ...

    async def create(self, fields: JsonObject) -> Task:
        """Create a task. Raise UsageError for invalid fields, LimitReached for too many tasks of one run."""
        ...

    async def update(self, task: str, fields: JsonObject) -> Task:
        """Set fields. Raise UsageError for invalid ones."""
        ...

    async def comment(self, task: str, text: str) -> Task:
        """Add a comment and return the task. Raise UsageError for an invalid text."""
        ...


@dataclass(frozen=True, slots=True)
class PendingTask:
    """A task with changes that a watcher has not handled yet."""

    task: int
    first: int
    """Number of the first of these changes."""
    first_at: int
    """Time of the first change, in ms."""
    last_at: int
    """Time of the last change, in ms."""
    depth: int
    """The smallest depth of these changes."""
    is_open: bool
    """True if the watcher's last run for this task has not ended."""
    recent: Sequence[int]
    """Times of the watcher's last runs for this task, in ms, newest first."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The changes that a watcher has to handle."""

    tasks: Sequence[PendingTask] = ()
    """Tasks sorted by their first change, up to a maximum number. Further tasks follow when these are handled."""
    last: int = 0
    """Number of the last change of any task."""
    busy: int = 0
    """Number of the watcher's runs that are queued or running."""


@dataclass(frozen=True, slots=True)
class TaskDue:
    """Changes to a task that a run handles.

    They are recorded in the transaction that stores the run's prompt, so no change is handled twice.
    """

    watcher: str
    task: int
    through: int
    max_runs: int = 1


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task and its changes since a watcher last handled it, read from one snapshot."""

    task: Task
    through: int
    """Number of the task's last change."""
    changes: Sequence[TaskChange]
    """Changes since then, oldest first, without those of the watcher's own runs. If there are many, only the latest changes."""
    comments: Sequence[TaskComment]
    """The newest comments of the task, oldest first."""


class WatcherStore(Protocol):
    """The watchers of one owner, and the changes that they have handled. The watchers see only this owner's tasks."""

    async def version(self) -> int:
        """Return a number that increases with each change to a task. This is cheap."""
        ...

    async def ensure(self, names: Sequence[str]) -> None:
        """Activate exactly these watchers. A new watcher handles only changes from now on."""
        ...

    async def pending(self, watcher: TaskWatcher) -> Pending:
        """Return the tasks whose changes the watcher has to handle."""
        ...

    async def advance(self, watcher: str, through: int) -> None:
        """Record that the watcher has handled all changes up to this one. They remain handled if its conditions change later."""
        ...

    async def changed(self, watcher: str, task: int) -> ChangedTask:
        """Return the task and its changes. Raise NotFound if it was deleted."""
        ...

    async def give_up(self, due: TaskDue, reason: str) -> None:
        """Record that the changes can't be handled."""
        ...
