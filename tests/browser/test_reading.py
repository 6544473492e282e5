"""Long conversations: their start is shown without loading everything in between."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import messages, ready, say, until
from browser.visits import PHONE, Visit, inaccessible

COUNT = 400


@pytest.fixture(scope="module")
def long(server: Served) -> str:
    """A conversation of 400 messages and an answer to the last one."""
    id = f"long-{uuid4().hex[:12]}"
    sent = [
        {"id": f"{id}-{number}", "role": ("user", "assistant")[number % 2], "parts": [{"type": "text", "text": f"Number {number}."}]}
        for number in range(COUNT)
    ]
    sent.append({"id": f"{id}-end", "role": "user", "parts": [{"type": "text", "text": "say The end."}]})
    with server._send("POST", "/api/chat", {"id": id, "messages": sent, "trigger": "submit-message"}) as answer:
        answer.read()
    return str(server.call("GET", f"/api/conversations/{id}")["id"])


def shows(page: Page, text: str) -> None:
    item = messages(page).get_by_text(text, exact=True)
    expect(item).to_be_in_viewport()
    expect(item).to_be_visible()  # new messages are hidden until their height is known


def scrolled_to(item: Locator) -> bool:
    """Scroll down by less than a screen. Return True if the item is rendered."""
    messages(item.page).evaluate("(box) => box.scrollBy(0, box.clientHeight * 0.9)")
    return item.count() > 0


def pages(tab: Visit) -> list[str]:
    return [url for url in tab.requests if re.search(r"/messages\?", url)]


def test_the_start_of_a_long_conversation_is_shown_without_the_messages_in_between(visit: Visitor, long: str, axe: str) -> None:
    tab = visit(f"/c/{long}")
    page = tab.page
    shows(page, "The end.")
    assert len(pages(tab)) == 1
    page.get_by_role("button", name="Jump to start").click()
    shows(page, "Number 0.")
    expect(messages(page)).to_be_focused()
    expect(page.get_by_role("button", name="Jump to start")).to_have_count(0)
    assert len(pages(tab)) <= 3
    assert inaccessible(page, axe) == []
    tab.shot("start")
    later = messages(page).get_by_text("Number 200.", exact=True)  # two pages further
    until(page, lambda: scrolled_to(later))
    page.get_by_role("button", name="Jump to latest").click()
    shows(page, "The end.")
    page.keyboard.press("Home")
    shows(page, "Number 0.")
    page.keyboard.press("End")
    shows(page, "The end.")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_text("Jump to start")).to_be_visible()


def test_a_prompt_sent_from_the_start_is_shown_with_its_answer(visit: Visitor, long: str, server: Served) -> None:
    copy = server.call("POST", f"/api/conversations/{long}/fork", {})["id"]
    page = visit(f"/c/{copy}").page
    shows(page, "The end.")
    page.get_by_label("Message", exact=True).press("Home")  # moves the caret
    shows(page, "The end.")
    page.get_by_role("button", name="Jump to start").click()
    shows(page, "Number 0.")
    say(page, "say From the start")
    ready(page)
    shows(page, "From the start")
    page.get_by_role("button", name="Jump to start").click()
    shows(page, "Number 0.")
    first = messages(page).get_by_role("heading", name="You").first.locator("..")
    expect(first).to_contain_text("Number 0.")
    first.hover()
    first.get_by_role("button", name="Edit").click()
    field = messages(page).get_by_role("textbox")
    field.fill("say Edited")
    field.press("Enter")
    ready(page)
    shows(page, "Edited")
    expect(messages(page).get_by_role("heading", level=3)).to_have_count(2)


def test_scrolling_from_the_start_reaches_the_latest_messages(visit: Visitor, server: Served) -> None:
    id = server.say("say Number 0")
    for number in range(1, 50):
        server.say(f"say Number {number}", conversation=id)
    tab = visit(f"/c/{id}", viewport=PHONE)
    page = tab.page
    shows(page, "Number 49")
    expect(page.get_by_role("button", name="Jump to start")).to_be_hidden()
    messages(page).evaluate("(box) => box.scrollBy(0, -400)")
    page.get_by_role("button", name="Jump to start").click()
    shows(page, "Number 0")
    expect(messages(page).get_by_text("Number 0", exact=True)).to_be_in_viewport()
    tab.shot("start-phone")
    latest = messages(page).get_by_text("Number 49", exact=True)
    until(page, lambda: scrolled_to(latest))
    messages(page).evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
    shows(page, "Number 49")
    expect(page.get_by_role("button", name="Jump to latest")).to_have_count(0)
