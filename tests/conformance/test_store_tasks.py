"""Tasks of projects: fields, numbers, versions, comments, and the history that watchers read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moot.errors import Busy, LimitReached, NotFound, UsageError
from moot.store.tasks import items as stored
from moot.types.canonical import JsonObject
from moot.types.conversation import Project
from moot.types.ids import new_id
from moot.types.store import Store
from moot.types.task import TITLE_CHARACTERS, Author, Task, TaskFilter, TaskWatcher

pytestmark = pytest.mark.anyio

ME = Author("local")
WATCHER = TaskWatcher("w", "go")


async def project(store: Store, name: str = "shop") -> str:
    return (await store.projects.create(Project(new_id(), name))).id


async def add(store: Store, to: str, title: str = "Fix it", by: Author = ME, **fields: Any) -> Task:
    return await store.tasks.create(Task(new_id(), to, title), by, fields)


async def test_tasks_are_numbered_by_project_and_no_number_is_given_twice(store: Store) -> None:
    one, two = await project(store, "one"), await project(store, "two")
    assert [(await add(store, where)).number for where in (one, one, two)] == [1, 2, 1]
    await store.tasks.remove(one, "2")
    assert (await add(store, one)).number == 3
    with pytest.raises(NotFound, match="no task '2'"):
        await store.tasks.get(one, "2")
    assert (await store.tasks.get(one, "#3")).number == 3


async def test_the_default_project_gets_tasks_before_it_has_anything_else(store: Store) -> None:
    task = await add(store, "default")
    assert (await store.tasks.get("default", "1")) == task
    assert (await store.tasks.list("default")).items == [task]


async def test_a_task_keeps_its_fields_and_creating_it_again_returns_it(store: Store) -> None:
    where = await project(store)
    fields: JsonObject = {
        "description": "# Why\n",
        "status": "blocked",
        "tags": ["ui", "ui", " two  words "],
        "assignee": "ann",
        "due": "2026-12-24",
    }
    task = await store.tasks.create(Task(new_id(), where, "  Fix\nit "), replace(ME, name="bob"), fields)
    assert (task.title, task.description, task.status, task.tags) == ("Fix it", "# Why\n", "blocked", ("ui", "two words"))
    assert (task.assignee, task.due, task.author, task.version, task.comments) == ("ann", "2026-12-24", "bob", 1, 0)
    assert task.is_overdue("2026-12-25") and not task.is_overdue("2026-12-24")
    assert not replace(task, status="done").is_overdue("2026-12-25")
    assert await store.tasks.create(replace(task, title="other"), ME) == task
    assert len((await store.tasks.list(where)).items) == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"title": " "}, "title of the task is empty"),
        ({"title": "x" * (TITLE_CHARACTERS + 1)}, "at most 200 characters, got 201"),
        ({"status": "finished"}, "Unknown status 'finished'"),
        ({"tags": "ui"}, "must be a list"),
        ({"tags": [""]}, "must be a list"),
        ({"tags": ["x"] * 21}, "at most 20"),
        ({"due": "tomorrow"}, "Invalid due date 'tomorrow'"),
        ({"due": 5}, "Invalid due date 5"),
        ({"priority": 1}, "no field 'priority'"),
        ({"description": None}, "must be a string"),
    ],
)
async def test_invalid_fields_are_refused_and_nothing_is_stored(store: Store, fields: JsonObject, words: str) -> None:
    where = await project(store)
    with pytest.raises(UsageError, match=words):
        await store.tasks.create(Task(new_id(), where, "x"), ME, fields)
    task = await add(store, where)
    with pytest.raises(UsageError, match=words):
        await store.tasks.update(where, "1", fields, ME)
    assert (await store.tasks.list(where)).items == [task]


async def test_an_update_changes_the_given_fields_and_the_history_names_them(store: Store) -> None:
    where = await project(store)
    task = await add(store, where, tags=["ui"])
    assert await store.tasks.update(where, "1", {"title": "Fix it", "tags": ["ui"]}, ME) == task  # no difference
    changed = await store.tasks.update(where, task.id, {"status": "in_review", "tags": []}, Author("coder", run="r", watcher="w", depth=1))
    assert (changed.status, changed.tags, changed.version) == ("in_review", (), 2)
    await store.tasks.update(where, "1", {"due": "2026-01-01"}, ME)
    changes, runs = await store.tasks.history(where, "1")
    assert [(change.event, change.fields, change.before, change.status, change.author) for change in changes] == [
        ("updated", ("due",), "in_review", "in_review", "local"),
        ("status", ("status", "tags"), "backlog", "in_review", "coder"),
        ("created", (), "backlog", "backlog", "local"),
    ]
    assert (changes[1].run, changes[1].watcher, changes[1].depth, runs) == ("r", "w", 1, [])


async def test_a_change_of_another_version_is_refused(store: Store) -> None:
    where = await project(store)
    task = await add(store, where)
    await store.tasks.comment(where, "1", "seen", ME)
    with pytest.raises(Busy, match="has changed since you read it"):
        await store.tasks.update(where, "1", {"status": "done"}, ME, version=task.version)
    with pytest.raises(Busy):
        await store.tasks.remove(where, "1", version=task.version)
    assert (await store.tasks.update(where, "1", {"status": "done"}, ME, version=2)).version == 3


async def test_comments_are_paged_and_a_repeated_id_adds_none(store: Store) -> None:
    where = await project(store)
    await add(store, where)
    for number in range(5):
        await store.tasks.comment(where, "1", f"c{number}", ME, id=f"id{number}")
    again = await store.tasks.comment(where, "1", "other words", ME, id="id4")
    assert again.text == "c4"
    first = await store.tasks.comments(where, "1", limit=3)
    rest = await store.tasks.comments(where, "1", limit=3, cursor=first.next_cursor)
    assert [comment.text for comment in (*first.items, *rest.items)] == ["c4", "c3", "c2", "c1", "c0"]
    assert rest.next_cursor is None
    assert (await store.tasks.get(where, "1")).comments == 5
    with pytest.raises(UsageError, match="comment is empty"):
        await store.tasks.comment(where, "1", " \n", ME)


async def test_lists_are_filtered_sorted_by_status_and_paged(store: Store) -> None:
    where = await project(store)
    for title, status, tags in (
        ("one", "done", ["a"]),
        ("two", "backlog", ["a", "b"]),
        ("three ÄRA", "backlog", []),
        ("four", "archived", ["a"]),
    ):
        await add(store, where, title, status=status, tags=tags)

    async def titles(limit: int = 50, cursor: str | None = None, **conditions: Any) -> list[str]:
        return [task.title for task in (await store.tasks.list(where, TaskFilter(**conditions), limit=limit, cursor=cursor)).items]

    assert await titles() == ["three ÄRA", "two", "one"]  # archived ones only on request
    assert await titles(statuses=("archived", "done")) == ["one", "four"]
    assert await titles(tags=("a",)) == ["two", "one"]
    assert await titles(tags=("a", "b")) == ["two"]
    assert await titles(query="ära thr") == ["three ÄRA"]
    assert await titles(query="%") == []
    assert await titles(author="nobody") == []
    page = await store.tasks.list(where, limit=2)
    assert await titles(limit=2, cursor=page.next_cursor) == ["one"]
    await add(store, "default", "elsewhere")
    assert "elsewhere" in [task.title for task in (await store.tasks.list(None)).items]


async def test_limits_hold(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    where = await project(store)
    monkeypatch.setattr(stored, "MOST_TASKS", 3)
    monkeypatch.setattr(stored, "MOST_COMMENTS", 1)
    monkeypatch.setattr(stored, "MOST_CREATED", 1)
    await add(store, where, by=Author("coder", run="r"))
    with pytest.raises(LimitReached, match="at most 1 tasks"):
        await add(store, where, by=Author("coder", run="r"))
    await add(store, where)
    await add(store, where)
    with pytest.raises(LimitReached, match="already has 3 tasks"):
        await add(store, where)
    await store.tasks.comment(where, "1", "a", ME)
    with pytest.raises(LimitReached, match="already has 1 comments"):
        await store.tasks.comment(where, "1", "b", ME)


async def test_removing_a_project_removes_its_tasks(store: Store) -> None:
    where = await project(store)
    await store.tasks.watchers.ensure(["w"])
    await add(store, where)
    await store.tasks.comment(where, "1", "text", ME)
    other = await add(store, "default")
    await store.projects.remove(where)
    assert (await store.tasks.list(None)).items == [other]
    assert [pending.task for pending in (await store.tasks.watchers.pending(WATCHER)).tasks] == [other.no]


async def test_a_watcher_sees_only_changes_made_after_it_was_added(store: Store) -> None:
    where = await project(store)
    await add(store, where)
    await store.tasks.watchers.ensure(["w"])
    assert (await store.tasks.watchers.pending(WATCHER)).tasks == ()
    await store.tasks.update(where, "1", {"status": "in_progress"}, ME)
    (pending,) = (await store.tasks.watchers.pending(WATCHER)).tasks
    changed = await store.tasks.watchers.changed("w", pending.task)
    assert [change.event for change in changed.changes] == ["status"]
    await store.tasks.watchers.ensure([])
    await store.tasks.watchers.ensure(["w"])  # after it was removed from the configuration, it starts afresh
    assert (await store.tasks.watchers.pending(WATCHER)).tasks == ()


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, True),
        ({"project": "shop"}, True),
        ({"project": "other"}, False),
        ({"events": frozenset({"commented"})}, False),
        ({"events": frozenset({"created"})}, True),
        ({"statuses": frozenset({"backlog"})}, True),
        ({"statuses": frozenset({"done"})}, False),
        ({"tags": frozenset({"x", "ui"})}, True),
        ({"tags": frozenset({"x"})}, False),
        ({"assignee": "ann"}, True),
        ({"assignee": "bob"}, False),
    ],
)
async def test_a_watcher_sees_only_changes_that_meet_its_conditions(store: Store, conditions: Any, found: bool) -> None:
    await store.tasks.watchers.ensure(["w"])
    await add(store, await project(store), tags=["ui"], assignee="ann")
    pending = await store.tasks.watchers.pending(replace(WATCHER, **conditions))
    assert bool(pending.tasks) is found
    await store.tasks.watchers.advance("w", pending.last)  # wider conditions don't reach back
    assert (await store.tasks.watchers.pending(WATCHER)).tasks == ()


@pytest.mark.parametrize(("watcher", "depth", "found"), [("w", 1, False), ("other", 1, True), ("other", 3, False), ("", 0, True)])
async def test_a_watcher_ignores_its_own_changes_and_long_chains(store: Store, watcher: str, depth: int, found: bool) -> None:
    where = await project(store)
    await add(store, where)
    await store.tasks.watchers.ensure(["w"])
    await store.tasks.comment(where, "1", "x", Author("coder", "r", watcher, depth))
    assert bool((await store.tasks.watchers.pending(WATCHER)).tasks) is found


async def test_changes_are_not_missed_after_the_newest_task_was_removed(store: Store) -> None:
    where = await project(store)
    await add(store, where)
    await store.tasks.remove(where, "1")
    await store.tasks.watchers.ensure(["w"])
    await add(store, where)
    assert len((await store.tasks.watchers.pending(WATCHER)).tasks) == 1
