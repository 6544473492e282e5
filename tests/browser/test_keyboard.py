from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.test_conversation import ready


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"))


def test_a_whole_visit_works_by_keyboard_alone(visit: Visitor, server: Served) -> None:
    tab = visit("/settings")
    page = tab.page
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("n")
    page.wait_for_url(re.compile("/$"))
    field = page.get_by_role("textbox").last
    field.focus()
    word = f"emu{uuid4().hex[:6]}"
    page.keyboard.type(f"say {word}")
    page.keyboard.press("Enter")
    expect(page.locator("main").get_by_text(word).last).to_be_visible(timeout=20_000)
    ready(page)  # Escape would stop the run
    page.keyboard.press("Escape")
    page.keyboard.press("F6")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("i")
    expect(page.get_by_role("heading", name="Inbox")).to_be_focused()
    page.keyboard.press("Alt+ArrowDown")
    page.wait_for_url(re.compile("/c/"))


def test_every_key_is_listed_and_single_letter_keys_can_be_disabled(visit: Visitor) -> None:
    tab = visit("/settings")
    page = tab.page
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet.get_by_text("Ctrl+K")).to_be_visible()
    tab.shot("keys-desktop-light")
    sheet.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("i")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("/settings")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()


KEYS = "keys: {{enter: alt+enter, newline: ctrl+j, stop: [esc, f8], new: f9, conversations: [ctrl+x l, f4]}}\n"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A server whose configuration sets keys."""
    with served(tmp_path, CONFIG + KEYS) as one:
        yield one


def test_keys_of_the_configuration_apply_to_the_page(own: Served, visit: Visitor) -> None:
    page = visit("/settings", at=own).page
    page.keyboard.press("n")
    page.keyboard.press("F4")
    expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("F9")
    page.wait_for_url(re.compile("/$"))
    field = page.get_by_role("textbox").last
    field.focus()
    page.keyboard.type("say one")
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    expect(field).to_have_value("say one\ntwo")
    page.keyboard.press("Alt+Enter")
    page.wait_for_url(re.compile("/c/"))
    ready(page)


def test_the_theme_switch_shows_the_theme_that_a_key_chose(visit: Visitor) -> None:
    page = visit("/settings").page
    expect(page.get_by_role("radio", name="System")).to_be_checked()
    page.keyboard.press("t")
    expect(page.get_by_role("radio", name="Light")).to_be_checked()


def test_letters_typed_into_a_field_are_not_shortcuts(visit: Visitor) -> None:
    page = visit("/settings").page
    page.get_by_label("Filter settings").focus()
    page.keyboard.type("nib?/")
    expect(page.get_by_label("Filter settings")).to_have_value("nib?/")
    assert page.url.endswith("/settings")


def test_a_closed_menu_or_dialog_restores_the_focus(visit: Visitor, server: Served) -> None:
    name = f"Focus {uuid4().hex[:6]}"
    id = server.say("say Hello")
    server.call("PATCH", f"/api/conversations/{id}", {"title": name})
    page = visit().page
    button = page.get_by_role("button", name=f"Actions for {name}")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Pin")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
