"""Images and sound on the page."""

from __future__ import annotations

import base64
from typing import Any

from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import messages, ready, say

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")


def attach(page: Page, name: str, media_type: str, data: bytes) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files({"name": name, "mimeType": media_type, "buffer": data})
    expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()


def prompt(server: Served, page: Page) -> list[Any]:
    """Return the parts of the last user message on the server."""
    listed = server.call("GET", f"/api/conversations/{page.url.rpartition('/c/')[2]}/messages")["data"]
    return [message["parts"] for message in listed if message["role"] == "user"][-1]


def test_the_menu_of_an_attached_image_sets_its_detail(server: Served, visit: Visitor) -> None:
    page = visit().page
    attach(page, "a.png", "image/png", PNG)
    attach(page, "b.png", "image/png", PNG)
    page.get_by_role("button", name="Detail of a.png").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitemradio", name="Automatic detail")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Detail of a.png").click()
    expect(page.get_by_role("menuitemradio", name="Low detail")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("Escape")
    say(page, "say Small")
    expect(messages(page).get_by_text("Small", exact=True).last).to_be_visible()
    ready(page)
    assert [part.get("detail") for part in prompt(server, page) if part["type"] == "file"] == ["low", None]
