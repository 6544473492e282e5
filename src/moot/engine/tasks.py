"""Task watchers in a server process. A watcher starts a run when a task has changed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio

from moot.engine.runs import LocalRuns
from moot.errors import Busy, MootError, NotFound, StoreError
from moot.runtime.runtime import Runtime
from moot.types.canonical import JsonObject
from moot.types.conversation import Project
from moot.types.crash import point
from moot.types.hooks import VARIABLES
from moot.types.message import text_part
from moot.types.run import Prompt
from moot.types.task import DEPTH, WATCHER, ChangedTask, PendingTask, TaskComment, TaskDue, TaskWatcher
from moot.types.templates import fill_fields
from moot.types.token import LOCAL_USER

PER_HOUR = 12
"""Maximum number of runs per hour that a watcher starts for the same task. Further changes have to wait, even those by a person."""

LONGEST_WAIT = 10
"""Factor: a task that keeps changing is handled at the latest after `debounce` multiplied by this number."""

PROMPT_CHARACTERS = 200_000

_HOUR = 3_600_000
_POLL = 0.25
"""Seconds between two checks for changes."""
_ROUNDS = 4
"""Number of checks between two attempts to handle changes that had to wait for another run."""

log = logging.getLogger("moot.tasks")


class TaskWatchers:
    """The task watchers of this process. The clock wakes them when a task is due, so that none needs a loop of its own."""

    def __init__(self, runtime: Runtime, runs: LocalRuns) -> None:
        self._runtime = runtime
        self._runs = runs
        self._store = runtime.store.tasks.watchers
        self._scheduled: set[str] = set()
        self._is_blocked = False
        """True if changes are waiting for a run to end or for the store to work again."""
        self._unknown: frozenset[str] = frozenset()
        """Projects of watchers that don't exist. They are remembered so that each one is logged only once."""

    @property
    def _watchers(self) -> Mapping[str, TaskWatcher]:
        return {name: watcher for name, watcher in self._runtime.settings.task_watchers.items() if watcher.enabled}

    async def work(self) -> None:
        """Start runs for changed tasks, until cancelled. Changes by other processes or to the configuration take effect immediately."""
        seen: object = None
        rounds = 0
        while True:
            try:
                version = (await self._store.version() if self._watchers else 0, self._runtime.settings.generation)
                rounds += 1
                if version != seen or (self._is_blocked and rounds >= _ROUNDS):
                    await self.refresh()
                    seen, rounds = version, 0
            except MootError as error:  # such as a full disk; the next round tries again
                log.error("task watchers: %s", error)
            await anyio.sleep(_POLL)

    async def refresh(self) -> None:
        """Schedule the tasks that have changed, and remove all others from the clock."""
        watchers = self._watchers
        await self._store.ensure(sorted(watchers))
        await self._warn(watchers.values())
        self._is_blocked = False
        current: set[str] = set()
        for watcher in watchers.values():
            current |= await self._schedule(watcher)
        for key in self._scheduled - current:
            self._runs.clock.cancel(key)
        self._scheduled = current

    async def _schedule(self, watcher: TaskWatcher) -> set[str]:
        pending = await self._store.pending(watcher)
        await self._store.advance(watcher.name, pending.tasks[0].first - 1 if pending.tasks else pending.last)
        free = max(0, watcher.max_runs - pending.busy)
        ready = sorted((_due(watcher, task), task.first, task) for task in pending.tasks if not task.is_open)
        self._is_blocked |= len(ready[:free]) < len(pending.tasks)
        keys: set[str] = set()
        for due, _, task in ready[:free]:
            key = f"task:{watcher.name}:{task.task}"
            keys.add(key)
            if due != self._runs.clock.due(key):
                self._runs.clock.at(key, due, partial(self._fire, watcher.name, task))
        return keys

    async def _fire(self, name: str, pending: PendingTask) -> None:
        watcher = self._watchers.get(name)
        if watcher is None:
            return
        try:
            changed = await self._store.changed(name, pending.task)
        except NotFound:  # the task was deleted
            return
        except StoreError as error:
            log.error("could not read the task of the watcher %s: %s", name, error)
            self._is_blocked = True
            return
        due = TaskDue(name, pending.task, changed.through, watcher.max_runs)
        try:
            await self._submit(watcher, changed, due, pending.depth + 1)
        except Busy:  # another process was faster, or another run must end first
            self._is_blocked = True
        except StoreError as error:
            log.error("could not start the watcher %s: %s", name, error)
            self._is_blocked = True
        except MootError as error:
            log.error("the watcher %s failed for task #%d: %s", name, changed.task.number, error)
            await self._store.give_up(due, error.advice())

    async def _submit(self, watcher: TaskWatcher, changed: ChangedTask, due: TaskDue, depth: int) -> None:
        project = await self._runtime.store.of(LOCAL_USER).projects.get(changed.task.project)
        prompt = _prompt(watcher, changed, project, due, depth)
        point("tasks.due")
        await self._runs.submit(prompt)

    async def _warn(self, watchers: Iterable[TaskWatcher]) -> None:
        """Log each watcher whose project does not exist, but only once."""
        unknown: set[str] = set()
        for project in {watcher.project for watcher in watchers if watcher.project}:
            try:
                await self._runtime.store.of(LOCAL_USER).projects.get(project)
            except NotFound as error:
                unknown.add(project)
                if project not in self._unknown:
                    log.warning("task watchers: %s", error)
        self._unknown = frozenset(unknown)


def _due(watcher: TaskWatcher, task: PendingTask) -> int:
    """Return the time in ms at which to handle a task: after it has not changed for a while, but not too often."""
    pause = round(watcher.debounce * 1000)
    due = min(task.last_at + pause, task.first_at + LONGEST_WAIT * pause)
    return max(due, task.recent[PER_HOUR - 1] + _HOUR) if len(task.recent) >= PER_HOUR else due


def _prompt(watcher: TaskWatcher, changed: ChangedTask, project: Project, due: TaskDue, depth: int) -> Prompt:
    task = changed.task
    text = fill_fields(watcher.prompt, _payload(changed, project))
    if len(text) > PROMPT_CHARACTERS:
        text = f"{text[:PROMPT_CHARACTERS]}\n[cut at {PROMPT_CHARACTERS:,} characters]"
    about = f"#{task.number} {task.title}\n\n{task.description}".strip()
    settings: JsonObject = {WATCHER: watcher.name, DEPTH: depth, VARIABLES: {"next_task": about[:PROMPT_CHARACTERS]}}
    if watcher.unattended == "deny":
        settings["unattended"] = "deny"
    key = f"task:{watcher.name}:{task.id}"
    return Prompt(
        (text_part(text),),
        key=f"{key}:{due.through}" if watcher.fresh else key,
        client_id=f"{key}:{due.through}",
        directory=watcher.directory or project.root_path or str(Path.home()),
        project=task.project,
        agent=watcher.agent,
        model=watcher.model,
        mode=watcher.mode,
        on_busy="queue",
        trigger="task",
        on_crash="resume",
        settings=settings,
        due=due,
    )


def _payload(changed: ChangedTask, project: Project) -> JsonObject:
    """Return the values of the variables that prompts can contain."""
    task = changed.task
    new = {(change.at, change.author) for change in changed.changes if change.event == "commented"}
    return {
        "task": {
            **{name: getattr(task, name) for name in ("number", "id", "title", "description", "status", "author", "assignee", "due")},
            "tags": ", ".join(task.tags),
            "comments": _texts(changed.comments),
        },
        "project": {"id": project.id, "name": project.name},
        "changes": "\n".join(f"- {change.description}, by {change.author}" for change in changed.changes),
        "comment": _texts([comment for comment in changed.comments if (comment.at, comment.author) in new]),
    }


def _texts(comments: Sequence[TaskComment]) -> str:
    dated = ((datetime.fromtimestamp(comment.at / 1000, UTC), comment) for comment in comments)
    return "\n\n".join(f"{comment.author}, {at:%Y-%m-%d %H:%M} UTC:\n{comment.text}" for at, comment in dated)
