"""Setting up web search with the form, the switch next to the message field, and numbered sources under an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.visits import DESKTOP, PHONE, inaccessible
from moot.testing.script import Reply, ToolCall
from search_engine import SearchEngine, search_engine

ALLOWED = CONFIG.replace("rules: [", "rules: [{{tool: web_search, match: '*', action: allow}}, ").replace(
    "main: obedient@mine", "main: scripted@told"
)
SCRIPT = (
    Reply(when="weather", tool_calls=[ToolCall("web_search", {"query": "weather", "count": 2})]),
    Reply(when="weather", text="It rains [1], and later the sun shines [2]. See [7] and `[1]`.", times=0),
    Reply(when="", text="Hello.", times=0),
)
PAGES = [
    {"title": "Rain today", "url": "https://rain.example/today", "content": "Rain"},
    {"title": "Sun later", "url": "https://sun.example/later", "content": "Sun"},
]


@pytest.fixture
def engine() -> Iterator[SearchEngine]:
    with search_engine() as engine:
        engine.answer = {"results": PAGES}
        yield engine


@pytest.fixture
def fresh(tmp_path: Path, server: Served) -> Iterator[Served]:
    """A server without a search engine."""
    with ExitStack() as stack:
        yield stack.enter_context(served(tmp_path, ALLOWED, SCRIPT))


def send(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.get_by_role("button", name="Send").click()


def tools_of(server: Served) -> set[str]:
    """Return the tools that the model was last offered."""
    return {tool["function"]["name"] for tool in json.loads(server.told.requests()[-1]["body"])["tools"]}


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_search_engine_is_set_up_from_the_switch(
    visit: Visitor, fresh: Served, engine: SearchEngine, axe: str, viewport: dict[str, int]
) -> None:
    name = "desktop" if viewport is DESKTOP else "phone"
    tab = visit(at=fresh, viewport=viewport, allowed=("422", "400"))
    page = tab.page
    switch = page.get_by_role("button", name="Search the web", exact=True)
    switch.click()
    note = page.get_by_role("dialog", name="Search the web")
    expect(note).to_contain_text("No search engine is set up")
    assert inaccessible(page, axe) == []
    tab.shot(f"web-search-missing-{name}")
    note.get_by_role("link", name="Set up web search").click()
    page.get_by_role("button", name="Set up web search").click()
    form = page.get_by_role("dialog", name="Web search")
    form.get_by_label("Search engine").select_option("SearXNG")
    form.get_by_label("Address").fill(engine.url)
    form.get_by_label("API key").fill("search-key-0123456789")
    engine.status = 401
    form.get_by_role("button", name="Test and save").click()
    expect(form.get_by_role("alert")).to_contain_text("status 401")
    expect(form.get_by_role("alert")).to_contain_text("Check the key.")
    assert inaccessible(page, axe) == []
    tab.shot(f"web-search-form-{name}")
    engine.status = 200
    form.get_by_role("button", name="Test and save").click()
    expect(page.get_by_text("found “Rain today”. Saved.")).to_be_visible()
    card = page.get_by_role("region", name="Web search")
    expect(card).to_contain_text("SearXNG")
    expect(card).to_contain_text(engine.url)
    assert inaccessible(page, axe) == []
    tab.shot(f"web-search-card-{name}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    card.get_by_role("button", name="Change web search").click()
    assert form.get_by_label("API key").input_value() == "", "the key never comes back"
    form.get_by_role("button", name="Remove", exact=True).click()
    form.get_by_role("button", name="Remove key and address?").click()
    expect(card).to_contain_text("No search engine is set up.")
    expect(form).to_have_count(0)
    tab.context.close()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_switch_applies_to_a_conversation_and_sources_are_numbered(
    visit: Visitor, fresh: Served, engine: SearchEngine, axe: str, viewport: dict[str, int]
) -> None:
    name = "desktop" if viewport is DESKTOP else "phone"
    fresh.call("PUT", "/api/web-search", {"provider": "searxng", "base_url": engine.url})
    tab = visit(at=fresh, viewport=viewport)
    page = tab.page
    switch = page.get_by_role("button", name="Search the web", exact=True)
    expect(switch).to_have_attribute("aria-pressed", "false")
    expect(switch).to_have_attribute("title", "Search the web: the agent decides")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert inaccessible(page, axe) == []
    tab.shot(f"web-search-switch-{name}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    buttons = page.locator("form button:visible")
    edge = page.locator("form").first.evaluate("form => form.getBoundingClientRect().right")
    for box in (buttons.nth(at).bounding_box() for at in range(buttons.count())):
        assert box and box["x"] + box["width"] <= edge
    send(page, "What is the weather?")
    sources = page.get_by_role("region", name="Sources")
    expect(sources.get_by_role("listitem")).to_have_count(2)
    expect(sources.get_by_role("link").first).to_have_attribute("href", "https://rain.example/today")
    answer = page.get_by_role("log", name="Messages")
    expect(answer.get_by_role("link", name="[2]", exact=True)).to_have_attribute("href", "https://sun.example/later")
    expect(answer.get_by_text("It rains [1], and later the sun shines [2]. See [7] and [1].", exact=True)).to_be_visible()
    expect(answer.get_by_role("link", name="[7]")).to_have_count(0)
    expect(answer.locator("code", has_text="[1]")).to_be_visible()
    assert inaccessible(page, axe) == []
    tab.shot(f"web-search-sources-{name}")
    assert "web_search" in tools_of(fresh) and "turned on web search" in fresh.told.requests()[-1]["body"]
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "true")
    expect(sources.get_by_role("listitem")).to_have_count(2)
    switch.click()
    expect(switch).to_have_attribute("title", "Search the web: off")
    conversation = re.sub(".*/c/", "", page.url)
    send(page, "Hello")
    expect(answer.get_by_text("Hello.", exact=True)).to_be_visible()
    assert "web_search" not in tools_of(fresh)
    page.reload()
    expect(switch).to_have_attribute("title", "Search the web: off")
    assert fresh.call("GET", f"/api/conversations/{conversation}")["settings"] == {"web_search": False}
    tab.context.close()
