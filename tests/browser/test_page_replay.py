"""A conversation is replayed from its log, and nothing is sent."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import field, messages, until
from browser.visits import DESKTOP, PHONE, inaccessible


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_a_conversation_is_replayed_with_pause_speed_and_stop(visit: Visitor, server: Served, axe: str, viewport: dict[str, int]) -> None:
    id = server.say("say The first answer")
    server.say("call list_files {}", conversation=id)
    tab = visit(f"/c/{id}", viewport=viewport)
    page = tab.page
    expect(messages(page).get_by_text("Done.", exact=True)).to_be_visible()
    sent: list[str] = []
    held: list[Route] = []
    page.route("**/messages?start=oldest*", lambda route: held.append(route))
    page.on("request", lambda request: sent.append(request.url) if request.method != "GET" else None)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Replay").click()
    controls = page.get_by_role("region", name="Replay")
    expect(controls.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Enter")
    expect(controls.get_by_role("status")).to_have_text("Paused")
    expect(field(page)).to_have_count(0)
    until(page, lambda: bool(held))
    held[0].continue_()
    expect(messages(page).get_by_text("Done.", exact=True)).to_have_count(0)
    assert inaccessible(page, axe) == []
    controls.get_by_role("button", name="16×").click()
    controls.get_by_role("button", name="Continue").click()
    expect(messages(page).get_by_text("The first answer", exact=True)).to_be_visible()
    expect(controls.get_by_role("status")).to_have_text("The replay has ended.")
    expect(messages(page).get_by_text("Done.", exact=True)).to_be_visible()
    expect(messages(page).get_by_role("button", name="Regenerate")).to_have_count(0)
    tab.shot(f"replay-{viewport['width']}")
    controls.get_by_role("button", name="Stop replay").click()
    expect(field(page)).to_be_visible()
    expect(messages(page).get_by_role("button", name="Regenerate").last).to_be_attached()
    assert sent == []


def test_an_answer_appears_in_its_own_time(visit: Visitor, server: Served) -> None:
    id = server.say("long", model="scripted@told")
    page = visit(f"/c/{id}").page
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Replay").click()
    paragraph = messages(page).get_by_text("A paragraph of an answer.")
    expect(paragraph.first).to_be_visible()
    page.get_by_role("button", name="16×").click()
    expect(page.get_by_role("region", name="Replay").get_by_role("status")).to_have_text("The replay has ended.")
    assert messages(page).inner_text().count("A paragraph of an answer.") == 400
