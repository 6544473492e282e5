"""Files, macros, tools and resources that a prompt names after `@`, on the page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.test_conversation import SLOW, field, messages, ready, say

PROGRAM = Path(__file__).parents[1] / "e2e" / "mcp_server.py"
MACROS = f"{CONFIG}macros: {{{{tone: Be kind.}}}}\n"


@pytest.fixture
def own(server: Served, tmp_path: Path) -> Iterator[Served]:
    """A server with a macro and with files in its folder."""
    with served(tmp_path, MACROS) as one:
        (one.moot.work / "two words.md").write_text("one\ntwo\nthree")
        (one.moot.work / "large.bin").write_bytes(b"x" * (21 << 20))
        yield one


def files(page: Page) -> Locator:
    return messages(page).get_by_role("list", name="Attachments").get_by_role("listitem")


def prompt(server: Served, page: Page) -> list[Any]:
    """Return the parts of the last user message on the server."""
    listed = server.call("GET", f"/api/conversations/{page.url.rpartition('/c/')[2]}/messages")["data"]
    return [message["parts"] for message in listed if message["role"] == "user"][-1]


def test_a_named_file_is_attached_shown_and_attached_again_when_the_prompt_is_edited(own: Served, visit: Visitor) -> None:
    page = visit(at=own).page
    field(page).press_sequentially("@two")
    page.get_by_role("option", name="two words.md").click()
    expect(field(page)).to_have_value('@"two words.md" ')
    say(page, '@{tone} slowly @"two words.md" and @gone.txt')
    expect(files(page)).to_have_text(["two words.md13 bytes"])
    expect(page.get_by_text("File 'gone.txt' not found; sent as text.")).to_be_visible()
    ready(page)
    expect(messages(page).get_by_text('Be kind. slowly @"two words.md"')).to_be_visible()
    page.reload()
    expect(files(page)).to_have_text(["two words.md13 bytes"])
    (own.moot.work / "two words.md").write_text("four")
    messages(page).get_by_role("button", name="Edit").click()
    editor = page.get_by_role("textbox", name="Edit message")
    expect(editor).to_have_value('@{tone} slowly @"two words.md" and @gone.txt')
    editor.fill('@{tone} say Edited @"two words.md#1"')
    page.get_by_role("button", name="Send", exact=True).first.click()
    expect(files(page)).to_have_text(["two words.md (line 1)4 bytes"])
    ready(page)
    page.get_by_role("button", name="Regenerate").last.click()
    ready(page)
    assert [part.get("filename") for part in prompt(own, page)] == ["two words.md", None]


def test_a_file_that_is_too_large_keeps_the_prompt_next_to_the_composer(own: Served, visit: Visitor) -> None:
    page = visit(at=own, allowed=("400", "404")).page
    field(page).fill("say something about @large.bin")
    expect(page.get_by_role("option", name="large.bin")).to_be_visible()
    page.keyboard.press("Enter")  # sends, because nothing is left to complete
    unsent = page.get_by_role("list", name="Messages not sent")
    expect(unsent.get_by_text("say something about @large.bin")).to_be_visible()
    expect(unsent.get_by_text("is larger than 20 MiB.")).to_be_visible()
    unsent.get_by_role("button", name="Edit").click()
    expect(field(page)).to_have_value("say something about @large.bin")
    say(page, "say something about `@large.bin`")
    ready(page)
    expect(files(page)).to_have_count(0)


def test_a_prompt_that_is_taken_back_returns_as_it_was_typed(own: Served, visit: Visitor) -> None:
    id = own.say("slowly please", model=SLOW, wait=False)
    page = visit(f"/c/{id}", at=own).page
    expect(messages(page).get_by_text("word word word")).to_be_visible()
    say(page, '@{tone} Read @"two words.md"')
    expect(page.get_by_role("list", name="Queued messages").get_by_text("Be kind. Read")).to_be_visible()
    page.get_by_role("button", name="Stop (Esc)").click()
    expect(field(page)).to_have_value('@{tone} Read @"two words.md"')
    expect(page.get_by_role("list", name="Attached files").get_by_role("listitem")).to_have_count(0)


def test_macros_tools_and_resources_are_completed(own: Served, visit: Visitor, tmp_path: Path) -> None:
    words = ("mcp", "add", "demo", "--no-connect", "--", sys.executable, str(PROGRAM), "stdio", str(tmp_path))
    assert own.moot.run(*words).returncode == 0
    page = visit(at=own).page
    field(page).press_sequentially("say @{to")
    page.get_by_role("option", name="{tone} Be kind.").click()
    expect(field(page)).to_have_value("say @{tone} ")
    field(page).press_sequentially("@demo:tod")
    expect(page.get_by_role("option", name="demo:note://today")).to_be_visible(timeout=30_000)
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value("say @{tone} @demo:note://today ")
    field(page).press_sequentially("@[list_f")
    page.get_by_role("option", name="[list_files{").click()
    expect(field(page)).to_have_value("say @{tone} @demo:note://today @[list_files{")
    field(page).press_sequentially('"path": "."}] ')
    field(page).press("Enter")
    expect(files(page)).to_contain_text(["today"])
    ready(page)
    expect(messages(page).get_by_text("say Be kind.", exact=False)).to_be_visible()
