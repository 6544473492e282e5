"""Two conversations side by side on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.visits import PHONE, inaccessible


@pytest.mark.timeout(170, func_only=True)
def test_two_conversations_are_compared_by_keyboard_and_on_a_phone(visit: Visitor, axe: str, server: Served) -> None:
    one, two = server.say("say Hello there"), server.say("say Hello you")
    tab = visit(f"/c/{one}")
    page = tab.page
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Compare").click()
    expect(page.get_by_role("heading", name="Compare", level=1)).to_be_focused()
    page.keyboard.press("Tab")
    chooser = page.get_by_label("Compare with", exact=True)
    expect(chooser).to_be_focused()
    chooser.select_option(two)
    expect(page.locator("main del")).to_contain_text("there")
    expect(page.locator("main ins")).to_contain_text("you")
    assert f"with={two}" in page.url
    assert inaccessible(page, axe) == []
    tab.shot("compare-desktop")
    phone = visit(f"/c/{one}/compare?with={two}", viewport=PHONE)
    expect(phone.page.locator("main ins")).to_contain_text("you")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    phone.shot("compare-phone")
