"""Importing conversations on the page, and purging one."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.visits import PHONE, inaccessible

RECORDED = Path(__file__).parents[1] / "recorded/formats/qwen"
TALK = "# {title}\n\n## User\n\nWo liegt das Protokoll?\n\n## Assistant\n\nIm Ordner *Sitzungen*.\n"


def upload(page: Page, name: str, content: str) -> None:
    page.get_by_label("File to import").set_input_files({"name": name, "mimeType": "text/markdown", "buffer": content.encode()})


def test_an_imported_file_has_a_report_that_opens_its_conversations(visit: Visitor, axe: str) -> None:
    title = f"Talk {uuid4().hex[:6]}"
    tab = visit("/settings/import", viewport=PHONE, theme="dark")
    page = tab.page
    upload(page, "talk.md", TALK.format(title=title))
    report = page.get_by_role("region", name="Last import")
    expect(report).to_contain_text("1 added · 2 new messages")
    report.get_by_text("1 conversation").press("Enter")
    expect(report).to_contain_text("kept: ")
    assert inaccessible(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.shot("import-report-phone-dark")
    report.get_by_role("link", name=title).press("Enter")
    expect(page.get_by_text("Im Ordner Sitzungen.")).to_be_visible()
    head = page.locator("header", has=page.get_by_role("heading", name=title))
    head.get_by_role("button", name="Details").press("Enter")
    expect(head.get_by_text("from md")).to_be_visible()
    expect(head).to_contain_text("talk.md")
    tab.shot("imported-head-phone-dark")
    page.get_by_role("button", name="Conversations").press("Enter")
    expect(page.get_by_role("link", name=title)).to_contain_text("from md")
    page.keyboard.press("Escape")
    tab.go("/settings/import")
    upload(page, "talk.md", TALK.format(title=title))
    expect(report).to_contain_text("Up to date")
    upload(page, "talk.bin", "\x00 nothing that anybody knows")
    expect(report).to_contain_text("No format recognizes")
    assert inaccessible(page, axe) == []


def test_all_found_agent_histories_are_listed_and_imported_by_keyboard(visit: Visitor, server: Served, axe: str) -> None:
    place = server.moot.home.parent / ".qwen/projects/-home-user-project/chats"
    shutil.copytree(RECORDED, place, dirs_exist_ok=True)
    unread = server.moot.home.parent / ".augment/sessions"
    unread.mkdir(parents=True, exist_ok=True)
    (unread / "one.json").write_text("x" * 1500)
    tab = visit("/settings/import")
    page = tab.page
    row = page.get_by_role("row").filter(has_text="qwen")
    expect(row).to_contain_text(str(place))
    folder = page.get_by_role("region", name="Can’t be read").get_by_role("row").filter(has_text=str(unread))
    expect(folder.get_by_role("rowheader")).to_contain_text("augment")
    expect(folder.get_by_role("cell")).to_have_text(["moot has no reader for this program", "1.5\u00a0kB"])
    assert inaccessible(page, axe) == []
    page.get_by_role("button", name="Import all").press("Enter")
    expect(page.get_by_role("region", name="Last import")).to_contain_text("1 added · 6 new messages")
    expect(row.get_by_role("cell").last).to_have_text("1")
    tab.shot("import-all-desktop-light")


def test_an_imported_conversation_continues_in_a_copy_that_replaces_it(visit: Visitor, axe: str) -> None:
    title = f"Talk {uuid4().hex[:6]}"
    tab = visit("/settings/import")
    page = tab.page
    upload(page, "talk.md", TALK.format(title=title))
    page.get_by_role("region", name="Last import").get_by_text("1 conversation").press("Enter")
    page.get_by_role("link", name=title).first.press("Enter")
    expect(page.get_by_text("Im Ordner Sitzungen.")).to_be_visible()
    whole, field = page.url, page.get_by_role("textbox", name="Message", exact=True)
    field.fill("say And further")
    field.press("Enter")
    log = page.get_by_role("log", name="Messages")
    expect(log.get_by_text("And further", exact=True)).to_be_visible()
    expect(log.get_by_text("Im Ordner Sitzungen.")).to_be_visible()
    expect(page.get_by_text("Continued in a copy. The original stays in sync with md.")).to_be_visible()
    copy = page.url
    assert copy != whole
    assert inaccessible(page, axe) == []
    tab.shot("copy-of-what-came-in-desktop-light")
    field.fill("say And more")
    field.press("Enter")
    expect(log.get_by_text("And more", exact=True)).to_be_visible()
    assert page.url == copy

    page.get_by_role("link", name=f"Forked from {title}").press("Enter")
    expect(log.get_by_text("And further", exact=True)).to_have_count(0)
    assert page.url == whole
    log.get_by_text("Wo liegt das Protokoll?").hover()
    expect(log.get_by_role("button", name="Regenerate").last).to_be_attached()  # the page has caught up with the store
    log.get_by_role("button", name="Edit").first.press("Enter")
    page.get_by_role("textbox", name="Edit message").fill("say Anders")
    page.get_by_role("textbox", name="Edit message").press("Control+Enter")
    expect(log.get_by_text("Anders", exact=True)).to_be_visible()
    expect(log.get_by_text("Im Ordner Sitzungen.")).to_have_count(0)
    assert page.url not in (whole, copy)
    tab.go(whole.removeprefix(tab.origin))
    expect(log.get_by_text("Im Ordner Sitzungen.")).to_be_visible()
    page.get_by_role("button", name="Regenerate").press("Enter")
    expect(log.get_by_text("Wo liegt das Protokoll?")).to_be_visible()
    expect(log.get_by_text("Im Ordner Sitzungen.")).to_have_count(0)
    assert page.url == copy, "it ends with that very answer, which gets a sibling there"


def test_a_deleted_conversation_is_purged_by_keyboard_after_a_confirmation(visit: Visitor, server: Served, axe: str) -> None:
    title = f"Goes {uuid4().hex[:6]}"
    id = server.say("say Hello")
    server.call("PATCH", f"/api/conversations/{id}", {"title": title})
    server.call("DELETE", f"/api/conversations/{id}")
    tab = visit()
    page = tab.page
    page.get_by_label("Filter by status").select_option("deleted")
    link = page.get_by_role("navigation", name="Conversations").get_by_role("link", name=title)
    question = page.get_by_role("dialog", name="Delete permanently?")

    def ask() -> None:
        button = page.get_by_role("button", name=f"Actions for {title}")
        for _ in range(50):  # the view that opens next to the list takes the focus once
            link.press("Tab")
            if button.evaluate("one => one === document.activeElement"):
                break
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name="Restore")).to_be_focused()
        for _ in range(3):
            page.keyboard.press("ArrowDown")
            if page.get_by_role("menuitem", name="Delete permanently").evaluate("one => one === document.activeElement"):
                break
        page.keyboard.press("Enter")
        expect(question).to_contain_text(title)

    ask()
    assert inaccessible(page, axe) == []
    tab.shot("delete-for-good-desktop-light")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(link).to_be_visible()
    ask()
    question.get_by_role("button", name="Cancel").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(question).to_have_count(0)
    expect(link).to_have_count(0)
    assert server.moot.run("chat", "show", id).returncode != 0
    assert id in server.moot.run("purge", "--receipts", "--json").stdout.decode()
