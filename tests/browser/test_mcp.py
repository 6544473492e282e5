"""MCP servers and plugins in the settings: connecting, switching, and accepting changed tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served

pytestmark = pytest.mark.timeout(120, func_only=True)

PROGRAM = Path(__file__).parents[1] / "e2e" / "mcp_server.py"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A separate server: its configuration changes."""
    home = tmp_path / "served"
    home.mkdir()
    with served(home) as one:
        yield one


def test_a_server_is_connected_its_changes_are_accepted_and_it_is_switched_off(own: Served, visit: Visitor, tmp_path: Path) -> None:
    words = ("mcp", "add", "demo", "--no-connect", "--", sys.executable, str(PROGRAM), "stdio", str(tmp_path))
    assert own.moot.run(*words).returncode == 0
    page = visit("/settings/tools", at=own).page
    entry = page.locator("[data-mcp=demo]")
    expect(entry.get_by_text("not started", exact=True)).to_be_visible()
    entry.get_by_role("button", name="Connect to demo").click()
    expect(entry.get_by_text("connected", exact=True)).to_be_visible(timeout=30_000)
    entry.get_by_text("Tools", exact=True).click()
    expect(entry.get_by_text("Add two numbers.")).to_be_visible()

    (tmp_path / "description").write_text("Add two numbers, quickly.")
    entry.get_by_role("button", name="Disable demo").click()
    expect(entry.get_by_text("disabled", exact=True)).to_be_visible()
    entry.get_by_role("button", name="Enable demo").click()
    entry.get_by_role("button", name="Connect to demo").click()
    expect(entry.get_by_text("Add two numbers, quickly.")).to_be_visible(timeout=30_000)
    entry.get_by_role("button", name="Accept 1 tool").click()
    expect(entry.get_by_role("button", name="Accept 1 tool")).to_be_hidden()
    expect(entry.get_by_text("8 tools")).to_be_visible()


def test_a_server_that_cannot_start_says_why(own: Served, visit: Visitor) -> None:
    assert own.moot.run("mcp", "add", "gone", "--no-connect", "--", "no-such-program").returncode == 0
    page = visit("/settings/tools", at=own, allowed=("status of",)).page
    page.get_by_role("button", name="Connect to gone").click()
    expect(page.get_by_role("alert").get_by_text("'no-such-program' is not installed", exact=False)).to_be_visible()


def test_a_plugin_is_listed_with_its_content_and_switched_off(own: Served, visit: Visitor, repository: Path) -> None:
    words = ("plugins", "install", str(repository / "examples/marketplace"), "--plugin", "house-style", "--yes")
    assert own.moot.run(*words).returncode == 0
    page = visit("/settings/tools", at=own).page
    entry = page.locator("[data-plugin=house-style]")
    expect(entry.get_by_text("enabled", exact=True)).to_be_visible()
    entry.get_by_text("Content", exact=True).click()
    expect(entry.get_by_text("PreToolUse shell: sh ${CLAUDE_PLUGIN_ROOT}/hooks/guard.sh")).to_be_visible()
    entry.get_by_role("button", name="Disable house-style").click()
    expect(entry.get_by_text("disabled", exact=True)).to_be_visible()
    assert b"disabled" in own.moot.run("plugins", "list").stdout
