"""Answers on the page: who writes them, what they wait for, and what can be done with them."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import messages, ready, say, until
from browser.visits import PHONE, inaccessible


def choose(page: Page, picker: str, option: str) -> None:
    """Choose an option of a picker below the composer by keyboard."""
    page.get_by_role("button", name=re.compile(f"^{picker}: ")).press("Enter")
    page.get_by_role("listbox", name=picker).get_by_role("option", name=option).first.click()


def test_the_model_button_names_the_next_model_and_an_answer_names_its_agent_and_model(visit: Visitor, server: Served, axe: str) -> None:
    tab = visit(viewport=PHONE, theme="dark")
    page = tab.page
    model = page.get_by_role("button", name=re.compile("^Model: "))
    expect(model).to_have_accessible_name("Model: obedient")
    choose(page, "Agent", "reviewer")
    expect(model).to_have_accessible_name("Model: scripted")
    choose(page, "Agent", "default")
    id = server.say("say Hello")
    wide = visit(f"/c/{id}").page
    expect(messages(wide).get_by_text(re.compile(r"^Written by moot · obedient"))).to_be_visible()
    choose(wide, "Agent", "reviewer")
    expect(wide.get_by_role("button", name=re.compile("^Model: "))).to_have_accessible_name("Model: scripted")
    say(wide, "Who are you?")
    ready(wide)
    expect(messages(wide).get_by_text(re.compile(r"^Written by reviewer · scripted"))).to_be_visible()
    wide.get_by_role("heading", level=1).hover()
    wide.get_by_role("heading", level=1).get_by_role("button").focus()
    actions = messages(wide).get_by_role("button", name="Regenerate").locator("xpath=..")
    expect(actions.first).to_have_css("opacity", "0")
    expect(actions.last).to_have_css("opacity", "1")
    assert inaccessible(wide, axe) == []
    assert inaccessible(tab.page, axe) == []


def seconds_of(page: Page, words: str) -> int:
    """Return the seconds that are shown after these words."""
    shown = re.compile(rf"{words}(\d+) s")
    found = shown.search(messages(page).get_by_text(shown).inner_text())  # waits while the page draws the answer again
    assert found
    return int(found[1])


def test_an_answer_says_what_it_waits_for(visit: Visitor, server: Served, axe: str) -> None:
    limited = server.say("too often", model="scripted@told", wait=False)
    tab = visit(f"/c/{limited}", viewport=PHONE)
    page = tab.page
    words = "Rate limited, retrying in "
    for _ in range(2):
        expect(messages(page).get_by_text(words)).to_be_visible()
        begun = seconds_of(page, words)
        until(page, lambda begun=begun: seconds_of(page, words) < begun)
        assert 20 < begun <= 51
        page.reload()
    assert inaccessible(page, axe) == []
    tab.shot("rate-limited-phone-light")
    silent = server.say("silence please", model="scripted@told", wait=False)
    tab.go(f"/c/{silent}")
    expect(messages(page).get_by_text(re.compile(r"^Waiting for the model, \d+ s$"))).to_be_visible()
    busy = server.say('call shell {"command": "sleep 60"}', wait=False, mode="auto")
    tab.go(f"/c/{busy}")
    expect(messages(page).get_by_text("Running a command")).to_be_visible()
    assert inaccessible(page, axe) == []


def test_a_message_is_deleted_and_restored(visit: Visitor, server: Served) -> None:
    id = server.say("say First answer")
    server.say("say Second answer", conversation=id)
    page = visit(f"/c/{id}").page
    ready(page)
    answers = messages(page).locator(".prose")
    expect(answers).to_have_text(["First answer", "Second answer"])
    messages(page).get_by_role("button", name="Delete message").nth(1).press("Enter")
    expect(answers).to_have_text(["Second answer"])
    roles = ["user", "user", "assistant"]
    until(page, lambda: [one["role"] for one in server.call("GET", f"/api/conversations/{id}/messages")["data"]] == roles)
    page.reload()
    expect(answers).to_have_text(["Second answer"])
    messages(page).get_by_role("button", name="Delete message").first.press("Enter")
    expect(messages(page).get_by_text("say First answer")).to_have_count(0)
    page.get_by_role("status", name="Notifications").get_by_role("button", name="Undo").press("Enter")
    expect(messages(page).get_by_text("say First answer")).to_be_visible()
    page.reload()
    expect(messages(page).get_by_text("say First answer")).to_be_visible()
