"""Tasks: work items of projects. Also their comments, the history of their changes, and watchers, which start runs on changes."""

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
"""created: a new task · status: another status · updated: any other field · commented: a new comment."""
EVENTS: tuple[TaskEvent, ...] = get_args(TaskEvent)

FIELDS: tuple[str, ...] = ("title", "description", "status", "tags", "assignee", "due")
"""The fields that a change may set."""

TITLE_CHARACTERS, DESCRIPTION_CHARACTERS, COMMENT_CHARACTERS = 200, 50_000, 20_000
TAGS, TAG_CHARACTERS, NAME_CHARACTERS = 20, 50, 200

WATCHER, DEPTH = "task_watcher", "task_depth"
"""The keys in `Run.settings` of a watcher's run for its name, and for the number of watchers' runs that led to it, including itself."""

DEEPEST = 3
"""Changes that this many runs of watchers led to don't start another one."""

VARIABLES: frozenset[str] = frozenset(
    (
        *("task.number", "task.id", "task.title", "task.description", "task.status", "task.tags", "task.author", "task.assignee"),
        *("task.due", "task.comments", "project.id", "project.name", "changes", "comment"),
    )
)
"""The variables of a watcher's prompt. `changes` has a line for each change since the last run, `comment` the new comments."""


@dataclass(frozen=True, slots=True)
class TaskWatcher:
    """One entry of `task_watchers`: the prompt that runs when a task changes."""

    name: str
    prompt: str
    """Template with `VARIABLES` in double braces. Their values are never expanded again."""
    project: str = ""
    """Id or name; empty = all projects."""
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
    """Maximum number of runs at once, each of another task. Those that wait for a person don't count."""
    fresh: bool = False
    """Start a new conversation for each run, instead of one for each task."""
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    directory: str = ""
    """Empty = the root of the task's project, or else the home folder."""
    unattended: Literal["deny", "ask"] = "deny"
    """Calls that need approval are denied, or wait for a person."""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Author:
    """The person or run that makes a change."""

    name: str
    """Name of the user or of the agent."""
    run: str | None = None
    """None = a person."""
    watcher: str = ""
    """The watcher that started the run, or the run that it is a sub-agent of; empty = none."""
    depth: int = 0
    """Number of runs of watchers that led to this change, including `run`."""


@dataclass(frozen=True, slots=True)
class Task:
    """A work item of a project."""

    id: str
    project: str
    """Id of its project."""
    title: str
    description: str = ""
    """Markdown."""
    status: TaskStatus = "backlog"
    tags: tuple[str, ...] = ()
    assignee: str = ""
    """Name of an agent or person; empty = no one."""
    due: str = ""
    """ISO date, such as 2026-12-24; empty = none."""
    author: str = ""
    number: int = 0
    """Number in its project, starting at 1. Set by the store."""
    comments: int = 0
    created_at: int = 0
    """ms"""
    updated_at: int = 0
    version: int = 1
    """Increased by each change and comment."""
    no: int = 0

    def is_overdue(self, today: str) -> bool:
        """Return whether it is still open after its due date. `today` is an ISO date."""
        return bool(self.due) and self.due < today and self.status not in CLOSED


@dataclass(frozen=True, slots=True)
class TaskComment:
    id: str
    author: str
    text: str
    """Markdown."""
    run: str | None = None
    """The run that wrote it; None = a person."""
    at: int = 0
    """ms"""
    no: int = 0


@dataclass(frozen=True, slots=True)
class TaskChange:
    """One entry of a task's history."""

    no: int
    event: TaskEvent
    fields: tuple[str, ...]
    """The changed fields of an update."""
    before: TaskStatus
    status: TaskStatus
    """The status after the change."""
    author: str
    run: str | None
    watcher: str
    depth: int
    at: int
    """ms"""

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
    """A run that a watcher has started for a task, or the reason why it could not."""

    watcher: str
    at: int
    """ms"""
    reason: str = ""
    run: str | None = None
    conversation: str | None = None
    status: str | None = None
    """Current status of the run; None = no run, or a deleted one."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Conditions of a list of tasks; all of them must hold."""

    statuses: Sequence[TaskStatus] = ()
    """Empty = all except archived."""
    tags: Sequence[str] = ()
    """Tags that a task must all have."""
    author: str = ""
    assignee: str = ""
    query: str = ""
    """Words that the title or description must contain, ignoring case."""
    updated_after: int = 0
    """ms"""
    overdue_on: str = ""
    """ISO date: only tasks that are overdue on it."""


class Tasks(Protocol):
    """Tasks of one owner. `task` is the number in the project, such as `12` or `#12`, or the id. All methods may raise NotFound."""

    @property
    def watchers(self) -> WatcherStore:
        """The owner's watchers."""
        ...

    async def list(
        self, project: str | None, conditions: TaskFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Task]:
        """List the tasks of a project, given by its id, or of all. Sorted by status and then the newest first.

        Raise UsageError for an invalid cursor.
        """
        ...

    async def count(self, project: str) -> int:
        """Return the number of tasks of a project."""
        ...

    async def get(self, project: str, task: str) -> Task: ...

    async def create(self, task: Task, by: Author, fields: JsonObject | None = None) -> Task:
        """Store a new task and return it with its number; one with a known id is returned as it is. `fields` replace those of the task.

        Raise UsageError for invalid fields, LimitReached for too many tasks.
        """
        ...

    async def update(self, project: str, task: str, changes: JsonObject, by: Author, *, version: int | None = None) -> Task:
        """Set fields of `FIELDS`. Without a difference, nothing is stored.

        Raise UsageError for invalid fields, Busy if the task has another version than the given one.
        """
        ...

    async def comment(self, project: str, task: str, text: str, by: Author, *, id: str = "") -> TaskComment:
        """Add a comment. Raise UsageError for an invalid text, LimitReached for too many comments."""
        ...

    async def comments(self, project: str, task: str, *, limit: int = 50, cursor: str | None = None) -> Page[TaskComment]:
        """Return comments, newest first. Raise UsageError for an invalid cursor."""
        ...

    async def history(self, project: str, task: str, *, limit: int = 50) -> tuple[list[TaskChange], list[TaskRun]]:
        """Return the last changes, and the last runs of watchers, newest first."""
        ...

    async def remove(self, project: str, task: str, *, version: int | None = None) -> Task:
        """Delete a task with its comments and history. Raise Busy as `update` does."""
        ...


class ProjectTasks(Protocol):
    """The tasks of a conversation's project, as tools may use them."""

    async def list(self, conditions: TaskFilter, *, limit: int) -> tuple[list[Task], bool]:
        """Return the first tasks that meet the conditions, and whether there are more."""
        ...

    async def get(self, task: str) -> Task:
        """Return a task by its number. Raise NotFound, as the other methods do."""
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
    """ms"""
    last_at: int
    depth: int
    """The smallest depth of these changes."""
    is_open: bool
    """True if the last run of the watcher for this task is not over."""
    recent: Sequence[int]
    """Times of the watcher's last runs for this task, in ms, newest first."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The changes that a watcher has to handle."""

    tasks: Sequence[PendingTask] = ()
    """Sorted by their first change. Bounded; the rest follows when these are handled."""
    last: int = 0
    """Number of the last change of any task."""
    busy: int = 0
    """Number of the watcher's runs that are queued or running."""


@dataclass(frozen=True, slots=True)
class TaskDue:
    """Changes of a task that a run handles. Recorded in the transaction that stores its prompt, so no change is handled twice."""

    watcher: str
    task: int
    through: int
    max_runs: int = 1


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task with what has changed since a watcher handled it, from one snapshot."""

    task: Task
    through: int
    """Number of the task's last change."""
    changes: Sequence[TaskChange]
    """Oldest first, without those of the watcher's own runs. Only the last ones if there are many."""
    comments: Sequence[TaskComment]
    """Its newest comments, oldest first."""


class WatcherStore(Protocol):
    """The watchers of one owner, and the changes that they have handled. They see only tasks of this owner."""

    async def version(self) -> int:
        """Return a number that increases with each change of a task, cheaply."""
        ...

    async def ensure(self, names: Sequence[str]) -> None:
        """Make exactly these watchers the ones in force. Changes before now don't concern a new one."""
        ...

    async def pending(self, watcher: TaskWatcher) -> Pending:
        """Return the tasks whose changes the watcher has to handle."""
        ...

    async def advance(self, watcher: str, through: int) -> None:
        """Record that no change up to this one concerns the watcher any more, also if its conditions change."""
        ...

    async def changed(self, watcher: str, task: int) -> ChangedTask:
        """Return the task and its changes. Raise NotFound if it was deleted."""
        ...

    async def give_up(self, due: TaskDue, reason: str) -> None:
        """Record that the changes can't be handled."""
        ...
