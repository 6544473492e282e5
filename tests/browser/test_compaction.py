from __future__ import annotations

from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import until


def test_a_summary_is_shown_at_its_place_edited_and_withdrawn(visit: Visitor, server: Served) -> None:
    conversation = server.say("first question")
    for at in range(3):
        server.say(f"question {at}", conversation=conversation)
    page = visit().go(f"/c/{conversation}")
    expect(page.get_by_text("question 2")).to_be_visible()
    server.call("POST", "/api/commands/compact", {"conversation": conversation, "argument": ""})
    summary = page.get_by_role("region", name="Summary of the messages above")
    summary.get_by_role("button", name="Summary of the messages above").click()
    expect(summary.get_by_text("Done.")).to_be_visible()
    summary.get_by_role("button", name="Edit").click()
    summary.get_by_label("Summary", exact=True).fill("They asked a **question**.")
    summary.get_by_role("button", name="Save").click()
    expect(summary.get_by_text("They asked a question.")).to_be_visible()
    summary.get_by_role("button", name="Withdraw").click()
    expect(summary).to_have_count(0)
    until(page, lambda: server.call("GET", f"/api/conversations/{conversation}/compactions")["data"] == [])
