from __future__ import annotations

from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.visits import PHONE, inaccessible


def test_the_last_prompt_is_undone_and_redone(visit: Visitor, server: Served, axe: str) -> None:
    mine, theirs = server.moot.work / "undo-mine.txt", server.moot.work / "undo-theirs.txt"
    mine.write_text("before")
    calls = [f'call write_file {{"path": "{path.name}", "content": "agent"}}' for path in (mine, theirs)]
    conversation = server.say("say a first answer")
    server.say("\n".join(calls), conversation=conversation, mode="auto")
    mine.write_text("by hand")
    tab = visit(viewport=PHONE)
    page = tab.go(f"/c/{conversation}")
    page.get_by_role("button", name="Undo this prompt").click()
    dialog = page.get_by_role("dialog", name="Undo this prompt")
    expect(dialog.get_by_text("it was changed since")).to_be_visible()
    tab.shot("undo-phone")
    assert inaccessible(page, axe) == []
    dialog.get_by_role("button", name="Cancel").click()
    tab = visit()
    page = tab.go(f"/c/{conversation}")
    expect(page.get_by_role("button", name="Undo this prompt")).to_have_count(1)
    page.get_by_role("button", name="Undo this prompt").click()
    dialog = page.get_by_role("dialog", name="Undo this prompt")
    expect(dialog.get_by_text("2 messages, 1 file")).to_be_visible()
    dialog.get_by_label("Overwrite files that have changed since then").check()
    expect(dialog.get_by_text("2 messages, 2 files")).to_be_visible()
    tab.shot("undo")
    dialog.get_by_role("button", name="Undo").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_have_value("\n".join(calls))
    assert mine.read_text() == "before" and not theirs.exists()
    page.get_by_role("button", name="Redo").click()
    expect(page.get_by_role("heading", name="You")).to_have_count(2)
    assert mine.read_text() == "by hand" and theirs.read_text() == "agent"
