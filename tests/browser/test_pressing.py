"""Clicks while the layout changes: buttons and text stay under a pressed pointer."""

from __future__ import annotations

from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import SLOW, messages, spoken, stop, until

REPORTS_WHILE_PRESSED = """() => {
  window.held = []
  let waits = true
  addEventListener('message', (event) => {
    if (!waits) return
    event.stopImmediatePropagation()
    held.push(event)
  }, true)
  addEventListener('pointerdown', () => {
    if (!held.length) return
    waits = false
    setTimeout(() => held.forEach(({ data, origin, source }) => dispatchEvent(new MessageEvent('message', { data, origin, source }))), 50)
  }, true)
}"""
"""Script that delivers what a frame reports about its content only after a button was pressed down."""


def test_a_button_keeps_its_place_while_content_above_it_opens(visit: Visitor, server: Served) -> None:
    id = spoken(server, "```html\n<h1 style='height: 600px'>A page</h1>\n```\n\n```mermaid\ngraph LR\n  A[socket] --> B[store]\n```")
    page = visit(f"/c/{id}").page
    page.evaluate(REPORTS_WHILE_PRESSED)
    page.get_by_role("button", name="Show preview").click()
    until(page, lambda: page.evaluate("window.held.length") > 0)
    page.get_by_role("button", name="Show diagram").click(delay=300)  # the preview's height becomes known during these milliseconds
    expect(page.frame_locator("iframe[title=Diagram]").get_by_text("socket")).to_be_visible(timeout=20_000)
    expect(page.frame_locator("iframe[title=Preview]").get_by_role("heading", name="A page")).to_be_visible()
    assert (page.locator("iframe[title=Preview]").bounding_box() or {})["height"] > 600


def test_a_button_can_be_pressed_while_an_answer_grows_below_it(visit: Visitor, server: Served) -> None:
    id = spoken(server, "A line.\n\n" * 30 + "```text\na block\n```")
    server.say("without end", model=SLOW, conversation=id, wait=False)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    log = messages(page)
    wrap = log.get_by_role("button", name="Wrap long lines")
    wrap.click(delay=400)  # a slow finger: lines arrive and the view follows the end during these milliseconds
    expect(wrap).to_have_attribute("aria-pressed", "true")
    log.evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
    box = log.bounding_box() or {}
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    at, height = log.evaluate("(box) => [box.scrollTop, box.scrollHeight]")
    until(page, lambda: log.evaluate("(box) => box.scrollHeight") > height + 60)
    assert log.evaluate("(box) => box.scrollTop") == at  # selected text stays in place
    page.mouse.up()
    until(page, lambda: log.evaluate("(box) => box.scrollHeight - box.scrollTop - box.clientHeight") < 48)
    stop(page)
