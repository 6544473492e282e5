"""A pending approval or question is always shown with its form, also if requests of the page fail or are answered late."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from uuid import uuid4

import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import messages, ready, say, until
from browser.visits import OUTAGE, PHONE, inaccessible

OPEN = re.compile(r"/api/approvals\?.*conversation=")
TREE = re.compile(r"/api/conversations/[^/]+/tree$")
ASKING = 'call ask_user {"questions": [{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]}'


def card(page: Page) -> Locator:
    return page.get_by_role("region", name="Run a command?")


def is_from_before(route: Route) -> None:
    route.fulfill(json={"data": [], "next_cursor": None})


def is_busy(route: Route) -> None:
    problem = {"title": "Busy", "detail": "The store is busy.", "status": 503, "code": "busy"}
    route.fulfill(status=503, content_type="application/problem+json", json=problem)


def is_lost(route: Route) -> None:
    route.abort()


@pytest.mark.parametrize("first_answer", [is_from_before, is_busy, is_lost])
def test_a_pending_approval_is_fetched_until_it_has_arrived(visit: Visitor, first_answer: Callable[[Route], None]) -> None:
    page = visit(allowed=(*OUTAGE, "503", "ERR_FAILED")).page
    page.route(OPEN, first_answer, times=1)
    say(page, f'call shell {{"command": "touch made-{uuid4().hex[:6]}"}}')
    expect(messages(page).get_by_role("button", name=re.compile("^Waiting for your approval"))).to_be_visible()
    expect(card(page)).to_be_visible()


def test_a_pending_question_is_fetched_until_it_has_arrived(visit: Visitor) -> None:
    page = visit(allowed=("503",)).page
    page.route(OPEN, is_busy, times=1)
    say(page, ASKING)
    form = page.get_by_role("form", name="Questions")
    form.get_by_label("red").check()
    form.get_by_role("button", name="Submit", exact=True).click()
    expect(form).to_have_count(0)
    expect(messages(page).get_by_role("button", name=re.compile("Ask 1 question"))).to_be_visible()


def test_a_failing_request_of_another_kind_hides_no_approval(visit: Visitor) -> None:
    page = visit(allowed=("503",)).page
    page.route(TREE, is_busy)
    say(page, f'call shell {{"command": "touch made-{uuid4().hex[:6]}"}}')
    expect(card(page)).to_be_visible()
    expect(page.get_by_text("The store is busy.").first).to_be_visible()


def test_approvals_that_cannot_be_fetched_are_reported(visit: Visitor) -> None:
    page = visit(allowed=("503",)).page
    page.route(OPEN, is_busy)
    say(page, f'call shell {{"command": "touch made-{uuid4().hex[:6]}"}}')
    expect(messages(page).get_by_role("alert").get_by_text("The store is busy.")).to_be_visible()
    page.unroute(OPEN)
    expect(card(page)).to_be_visible()
    expect(messages(page).get_by_role("alert")).to_have_count(0)


def test_a_late_answer_about_an_older_state_changes_nothing(visit: Visitor, server: Served) -> None:
    id = server.say("say Again and again")
    late: list[tuple[Route, APIResponse]] = []
    page = visit().page
    page.route(TREE, lambda route: late.append((route, route.fetch())), times=1)
    page.goto(f"{server.url}/c/{id}")
    until(page, lambda: bool(late))
    messages(page).get_by_role("button", name="Regenerate").click()
    expect(messages(page).get_by_text("2/2")).to_be_visible()
    ready(page)
    for route, response in late:
        with page.expect_response(TREE):
            route.fulfill(response=response)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it is drawn
    expect(messages(page).get_by_text("2/2")).to_be_visible()


def test_a_refused_feed_of_changes_is_opened_again(visit: Visitor, server: Served) -> None:
    id = server.say("say Before")
    tab = visit(allowed=("503",))
    refused: list[str] = []

    def is_refused(route: Route) -> None:
        refused.append(route.request.url)
        is_busy(route)

    tab.page.route(re.compile(r"/events\?after="), is_refused, times=1)
    tab.go(f"/c/{id}")
    until(tab.page, lambda: bool(refused))
    server.say("say From elsewhere", conversation=id)
    expect(messages(tab.page).get_by_text("From elsewhere", exact=True)).to_be_visible()


def test_a_wider_pattern_can_be_allowed_for_the_conversation(visit: Visitor, server: Served, axe: str) -> None:
    tab = visit()
    page = tab.page
    say(page, 'call shell {"command": "git log -1"}')
    expect(card(page).get_by_role("radio", name="git log -1", exact=True)).to_be_checked()
    card(page).get_by_role("button", name="Always allow…").click()
    wider = card(page).get_by_role("radio", name="git log *", exact=True)
    wider.check()
    expect(card(page).get_by_role("textbox", name="Always allow in every conversation")).to_have_value("git log *")
    card(page).get_by_role("button", name="Back").click()
    expect(wider).to_be_checked()
    assert not inaccessible(page, axe)
    tab.shot("approval-patterns-desktop-light")
    card(page).get_by_role("button", name="Allow in this conversation", exact=True).click()
    expect(card(page)).to_have_count(0)
    ready(page)
    id = page.url.rpartition("/")[2]
    until(page, lambda: [grant["match"] for grant in server.call("GET", f"/api/conversations/{id}")["grants"]] == ["git log *"])
    say(page, 'call shell {"command": "git log -2"}')
    expect(messages(page).get_by_role("button", name=re.compile("git log -2"))).to_be_visible()
    ready(page)
    expect(card(page)).to_have_count(0)
    asked = server.call("GET", f"/api/approvals?conversation={id}&open=false")["data"]
    assert [each["input"]["command"] for each in asked] == ["git log -1"]


def test_a_plan_is_shown_as_a_document_changed_and_answered(visit: Visitor, server: Served, axe: str) -> None:
    page = visit().page
    say(page, '/plan call exit_plan {"plan": "# Steps\\n\\n1. Look around"}')
    card = page.get_by_role("form", name="Questions")
    expect(card.get_by_role("heading", name="Steps")).to_be_visible()
    expect(card.get_by_role("listitem")).to_have_text(["Look around"])
    expect(page.get_by_role("button", name="Mode: Plan")).to_be_visible()  # also for the prompts that follow
    assert not inaccessible(page, axe)
    card.get_by_role("button", name="Edit", exact=True).click()
    card.get_by_label("Plan as Markdown").fill("# Steps\n\n1. Look around\n2. Ask")
    assert not inaccessible(page, axe)
    card.get_by_role("button", name="Preview", exact=True).click()
    expect(card.get_by_role("listitem")).to_have_text(["Look around", "Ask"])
    card.get_by_label("Accept and allow edits").check()
    card.get_by_role("button", name="Submit").click()
    expect(card).not_to_be_visible()
    expect(page.get_by_role("button", name="Mode: Edits")).to_be_visible()
    ready(page)
    stored = server.call("GET", f"/api/conversations/{page.url.rpartition('/')[2]}/messages")["data"]
    (part,) = [part for message in stored for part in message["parts"] if part["type"] == "tool-exit_plan"]
    assert "2. Ask" in part["output"]


def test_a_card_shows_the_folder_and_marks_commands_that_destroy(visit: Visitor, server: Served, axe: str) -> None:
    harmless = server.say('call shell {"command": "echo hello && ls"}')
    tab = visit(f"/c/{harmless}", viewport=PHONE, theme="dark")
    page = tab.page
    expect(card(page).get_by_text("echo hello && ls", exact=True)).to_have_count(1)
    expect(card(page)).to_contain_text(f"Folder: {server.moot.home.parent / 'work'}")
    expect(card(page).get_by_text("This command can delete data")).to_have_count(0)
    expect(card(page).get_by_role("list", name="Parts of the command")).to_have_count(0)  # they would repeat the command
    assert inaccessible(page, axe) == []
    dangerous = server.say('call shell {"command": "rm -rf build && echo ended", "access": "outside"}')
    tab.go(f"/c/{dangerous}")
    expect(card(page)).to_contain_text("This command can delete data or change the system:rm -rf build")
    expect(card(page).get_by_text("outside the sandbox")).to_have_count(1)
    assert inaccessible(page, axe) == []
    tab.shot("approval-dangerous-phone-dark")


def test_a_card_shows_an_edit_with_line_numbers_and_arguments_by_name(visit: Visitor, server: Served, axe: str) -> None:
    file = server.moot.home.parent / "work" / f"edited-{uuid4().hex[:6]}.txt"
    file.write_text("".join(f"{number} bottles\n" for number in range(1, 31)))
    edits = [{"old_text": "20 bottles\n", "new_text": "twenty bottles\n"}]
    edit = server.say(f"call edit_file {json.dumps({'path': file.name, 'edits': edits})}")
    tab = visit(f"/c/{edit}")
    page = tab.page
    change = page.get_by_role("region", name=f"Edit {file.name}?")
    rows = change.locator("div.flex", has_text="bottles")
    expect(rows).to_have_text(
        [
            *(re.compile(rf"^{n}\s+{n} bottles$") for n in (17, 18, 19)),
            re.compile(r"^20−removed: 20 bottles$"),
            re.compile(r"^20\+added: twenty bottles$"),
            *(re.compile(rf"^{n}\s+{n} bottles$") for n in (21, 22, 23)),
        ]
    )
    assert inaccessible(page, axe) == []
    tab.shot("approval-edit-desktop-light")
    called = server.say('call shell {"command": "sleep 1", "background": true, "timeout": 20}')
    tab.go(f"/c/{called}")
    expect(card(page).get_by_role("term")).to_have_text(["background", "timeout"])
    expect(card(page).get_by_role("definition")).to_have_text(["true", "20"])
    assert inaccessible(page, axe) == []
