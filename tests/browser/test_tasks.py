"""The tasks of a project and the cron jobs on the page: by mouse, by keyboard and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.test_conversation import until
from browser.visits import PHONE, inaccessible

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A separate server: projects and tasks change other views."""
    home = tmp_path / "served"
    home.mkdir()
    hook = 'outgoing_webhooks: {{team: {{url: "http://127.0.0.1:9/", secret: "a-secret-of-16-characters"}}}}\n'
    with served(home, CONFIG + hook) as one:
        yield one


def test_a_task_is_added_changed_commented_and_deleted(own: Served, visit: Visitor, axe: str) -> None:
    shop = own.call("POST", "/api/projects", {"name": "shop"})["id"]
    tasks = f"/api/projects/{shop}/tasks"
    tab = visit("/settings/projects", at=own)
    page = tab.page
    page.get_by_role("link", name="Tasks in shop").click()
    expect(page.get_by_text("No tasks")).to_be_visible()
    page.get_by_role("button", name="New task").click()
    form = page.get_by_role("dialog", name="New task")
    form.get_by_label("Title").fill("Fix the login <b>now</b>")
    form.get_by_label("Tags").fill("ui, bug")
    form.get_by_label("Due date").fill("2020-01-31")
    form.get_by_label("Assignee").fill("reviewer")
    assert not inaccessible(page, axe)
    form.get_by_role("button", name="Add task").click()
    expect(form).to_have_count(0)
    backlog = page.get_by_role("region", name="Backlog")
    expect(backlog.get_by_role("listitem")).to_contain_text("overdue since 2020-01-31")
    expect(backlog.get_by_role("button", name="Fix the login <b>now</b>")).to_be_visible()

    page.get_by_label("Status of #1").select_option(label="In review")
    expect(page.get_by_role("region", name="In review").get_by_role("listitem")).to_have_count(1)
    until(page, lambda: own.call("GET", f"{tasks}/1")["status"] == "in_review")

    page.get_by_role("button", name="Fix the login").focus()
    page.keyboard.press("Enter")
    task = page.get_by_role("dialog", name="Task #1")
    task.get_by_label("New comment").fill("Seen **it**.")
    task.get_by_role("button", name="Comment").click()
    expect(task.get_by_role("article")).to_contain_text("Seen **it**.")
    expect(task.get_by_role("region", name="History")).to_contain_text("backlog → in_review, by local")
    assert not inaccessible(page, axe)
    tab.shot("task-desktop-light")

    own.call("PATCH", f"{tasks}/1", {"description": "by an agent"})
    task.get_by_label("Title").fill("Fix the sign-in")
    tab.allowed = ("412",)
    task.get_by_role("button", name="Save").click()
    expect(task.get_by_role("alert")).to_contain_text("has changed since you read it")
    task.get_by_role("button", name="Load the current version").click()
    expect(task.get_by_label("Description")).to_have_value("by an agent")
    task.get_by_label("Title").fill("Fix the sign-in")
    task.get_by_role("button", name="Save").click()
    expect(task).to_have_count(0)
    expect(page.get_by_role("button", name="Fix the sign-in")).to_be_visible()
    tab.shot("tasks-desktop-light")

    small = visit(f"/settings/tasks?project={shop}&task=1", viewport=PHONE, theme="dark", at=own)
    dialog = small.page.get_by_role("dialog", name="Task #1")
    expect(dialog.get_by_label("Title")).to_have_value("Fix the sign-in")
    small.shot("task-phone-dark")
    assert not inaccessible(small.page, axe)
    dialog.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Yes, delete").click()
    expect(small.page.get_by_text("No tasks")).to_be_visible()
    until(small.page, lambda: own.call("GET", tasks)["data"] == [])


def test_a_cron_job_is_added_with_a_target_and_removed(own: Served, visit: Visitor, axe: str) -> None:
    tab = visit("/settings/cron", at=own, allowed=("400",))
    page = tab.page
    expect(page.get_by_text("No cron jobs")).to_be_visible()
    page.get_by_role("button", name="New job").click()
    form = page.get_by_role("dialog", name="New job")
    form.get_by_label("Name").fill("standup")
    form.get_by_label("Prompt").fill("say What changed?")
    form.get_by_label("Schedule", exact=True).fill("0 9 * * 1-5")
    expect(form.get_by_label("Deliver answers to")).to_have_value("log")
    form.get_by_label("Deliver answers to").fill("channel:irc:#moot")
    assert not inaccessible(page, axe)
    form.get_by_role("button", name="Add job").click()
    expect(form.get_by_text("There is no channel 'irc'.")).to_be_visible()
    form.get_by_label("Deliver answers to").fill("webhook:team")
    form.get_by_role("button", name="Add job").click()
    expect(form).to_have_count(0)
    row = page.get_by_role("row", name=re.compile("standup"))
    expect(row).to_contain_text("delivered to webhook:team")
    tab.shot("cron-desktop-light")
    row.get_by_role("button", name="Remove standup").click()
    page.get_by_role("button", name="Yes, remove").click()
    expect(page.get_by_text("No cron jobs")).to_be_visible()
    until(page, lambda: own.call("GET", "/api/cron")["data"] == [])
