"""The API documentation: code examples, and requests sent from the page with its session."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.visits import PHONE, inaccessible


def documentation(visit: Visitor, *, allowed: tuple[str, ...] = ()) -> Page:
    tab = visit(allowed=allowed)
    tab.page.goto(f"{tab.origin}/docs")
    return tab.page


def opened(page: Page, path: str, method: str = "GET") -> Locator:
    """Open an operation with the keyboard and return it."""
    page.get_by_role("searchbox", name="Filter operations").fill(f"{method.lower()} {path}")
    operation = page.locator("main details", has=page.locator(".path", has_text=re.compile(f"^{re.escape(path)}$"))).filter(
        has=page.locator(".method", has_text=re.compile(f"^{method}$"))
    )
    operation.locator("summary").first.press("Enter")
    return operation


def test_a_request_is_sent_with_the_session_of_the_page(visit: Visitor, server: Served, axe: str) -> None:
    page = documentation(visit, allowed=("404",))
    operation = opened(page, "/api/conversations", "POST")
    operation.get_by_text("Try it").press("Enter")
    operation.get_by_role("textbox", name="Body").fill(json.dumps({"title": "Made on the documentation page"}))
    operation.get_by_role("button", name="Send POST").press("Enter")
    expect(operation.get_by_role("status")).to_contain_text("201")
    made = json.loads(operation.get_by_label("Response").inner_text())
    assert server.call("GET", f"/api/conversations/{made['id']}")["title"] == "Made on the documentation page"

    one = opened(page, "/api/conversations/{conversation_id}")
    one.get_by_text("Try it").press("Enter")
    one.get_by_role("textbox", name="conversation_id").fill(made["id"])
    one.get_by_role("button", name="Send GET").press("Enter")
    expect(one.get_by_label("Response")).to_contain_text("Made on the documentation page")
    one.get_by_role("textbox", name="conversation_id").fill("no such id")
    one.get_by_role("button", name="Send GET").press("Enter")
    expect(one.get_by_role("status")).to_contain_text("404")
    expect(one.get_by_label("Response")).to_contain_text("urn:moot:problem:not_found")
    assert inaccessible(page, axe) == []
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("language", ["curl", "Python"])
def test_the_code_example_of_an_operation_works(visit: Visitor, server: Served, language: str) -> None:
    page = documentation(visit)
    operation = opened(page, "/api/conversations", "POST")
    operation.get_by_role("button", name=language, exact=True).press("Enter")
    code = operation.locator("figure pre").inner_text()
    command = ["sh", "-c", code] if language == "curl" else [sys.executable, "-c", code]
    environ = {"MOOT_TOKEN": server.token, "PATH": "/usr/bin:/bin"}
    printed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True).stdout
    assert json.loads(printed)["title"] == "Release notes"


def test_an_answer_is_shown_while_it_arrives(visit: Visitor) -> None:
    page = documentation(visit)
    operation = opened(page, "/v1/messages", "POST")
    operation.get_by_text("Try it").press("Enter")
    slow = {"model": "scripted@told", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "slowly please"}]}
    operation.get_by_role("textbox", name="Body").fill(json.dumps(slow))
    operation.get_by_role("button", name="Send POST").press("Enter")
    expect(operation.get_by_label("Response")).to_contain_text("word")  # the answer hangs in the middle
    operation.get_by_role("button", name="Stop").press("Enter")
    expect(operation.get_by_role("status")).to_have_text("Stopped.")
    expect(operation.get_by_role("button", name="Send POST")).to_be_enabled()
    expect(operation.get_by_label("Response")).not_to_contain_text("message_stop")
