"""MCP servers and plugins in the settings: connecting, signing in, browsing resources, switching, and accepting changed tools."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.test_conversation import field, messages, ready
from browser.visits import Visit, inaccessible
from e2e.test_mcp_login import Accounts, serving

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


def test_a_server_is_tested_added_changed_and_removed(own: Served, visit: Visitor, tmp_path: Path, axe: str) -> None:
    tab = visit("/settings/tools", at=own)
    page = tab.page
    page.get_by_role("button", name="Add server").click()
    form = page.get_by_role("dialog", name="Add server")
    form.get_by_label("Name", exact=True).fill("demo")
    form.get_by_label("Program", exact=True).fill(sys.executable)
    form.get_by_label("Arguments").fill(f"{PROGRAM}\nstdio\n{tmp_path / 'a folder'}")
    form.get_by_role("button", name="Add variable").click()
    form.get_by_label("Variable", exact=True).fill("KEY")
    form.get_by_label("Value of the variable").fill("canary-77")
    expect(form.locator("[data-preview]")).to_have_text(f"{sys.executable} {PROGRAM} stdio '{tmp_path / 'a folder'}'")
    form.get_by_role("button", name="Start and list tools").click()
    expect(form.get_by_text("Add two numbers.")).to_be_visible(timeout=30_000)
    assert "mcp:" not in (own.moot.home / "config.yaml").read_text()
    form.get_by_text("Nothing is saved yet.").scroll_into_view_if_needed()
    tab.shot("mcp-form-desktop-light")
    assert not inaccessible(page, axe)
    form.get_by_role("button", name="Add server").click()
    entry = page.locator("[data-mcp=demo]")
    expect(entry.get_by_text("connected", exact=True)).to_be_visible(timeout=30_000)
    assert "canary-77" not in page.content()

    entry.get_by_role("button", name="Edit demo").click()
    again = page.get_by_role("dialog", name="Change server “demo”")
    expect(again.get_by_label("Value of the variable")).to_have_value("")
    again.get_by_label("Trust the server’s hints").check()
    again.get_by_role("button", name="Save").click()
    expect(again).to_have_count(0)
    text = (own.moot.home / "config.yaml").read_text()
    assert "KEY: canary-77" in text and "trust_hints: true" in text

    entry.get_by_role("button", name="Edit demo").click()
    again.get_by_label("Kind of server").select_option("remote")
    again.get_by_label("Address").fill("http://127.0.0.1:1/mcp")
    tab.allowed = ("status of",)
    again.get_by_role("button", name="Connect and list tools").click()
    expect(again.get_by_role("alert")).to_be_visible()
    again.get_by_role("button", name="Remove", exact=True).click()
    again.get_by_role("button", name="Remove this server?").click()
    expect(entry).to_have_count(0)
    assert "canary-77" not in (own.moot.home / "config.yaml").read_text()


@pytest.fixture
def vault(own: Served, free_tcp_port: int) -> Iterator[Accounts]:
    """A configured remote MCP server that refuses access without a login."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(free_tcp_port)) as (remote, accounts):
        assert own.moot.run("mcp", "add", "vault", "--no-connect", "--url", remote.url).returncode == 0
        yield accounts


def at_vault(visit: Visitor, own: Served) -> Visit:
    """Open the settings, and connect to the server, which asks for a login."""
    one = visit("/settings/tools", at=own, allowed=("status of",))
    one.page.get_by_role("button", name="Connect to vault").click()
    expect(one.page.get_by_role("button", name="Sign in to vault")).to_be_visible(timeout=30_000)
    return one


@pytest.mark.usefixtures("vault")
def test_signing_in_connects_and_signing_out_deletes_the_login(own: Served, visit: Visitor, axe: str) -> None:
    one = at_vault(visit, own)
    entry = one.page.locator("[data-mcp=vault]")
    expect(entry.get_by_role("alert")).to_contain_text("refused access")
    with one.context.expect_page() as opened:
        entry.get_by_role("button", name="Sign in to vault").click()
    expect(opened.value.get_by_text("You are signed in. You can close this page.")).to_be_visible(timeout=30_000)
    assert opened.value.evaluate("window.opener") is None
    opened.value.close()
    expect(entry.get_by_text("connected", exact=True)).to_be_visible(timeout=30_000)
    expect(entry.get_by_text("1 tool", exact=True)).to_be_visible()
    expect(entry.get_by_role("alert")).to_be_hidden()
    assert not inaccessible(one.page, axe)
    stored = one.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "canary-" not in stored and "code_challenge" not in stored
    login = own.moot.home / "state" / "logins" / "vault.json"
    assert login.exists()
    entry.get_by_role("button", name="Sign out of vault").click()
    expect(entry.get_by_text("not started", exact=True)).to_be_visible()
    assert not login.exists()
    one.requests[:] = [url for url in one.requests if "/authorize?" not in url and "/callback?" not in url]


def test_a_login_that_waits_shows_its_address_and_is_cancelled(own: Served, visit: Visitor, vault: Accounts, axe: str) -> None:
    one = at_vault(visit, own)
    entry = one.page.locator("[data-mcp=vault]")
    one.page.add_init_script("window.open = () => null")  # as a browser that blocks the new tab
    one.page.reload()
    entry.get_by_role("button", name="Sign in to vault").click()
    expect(entry.get_by_text("Waiting for you to sign in to vault")).to_be_visible(timeout=30_000)
    one.page.reload()  # the server knows the login, so the page loses nothing
    link = entry.get_by_role("link", name="Open the sign-in page")
    expect(link).to_have_attribute("href", re.compile("/authorize[?].*code_challenge="))
    assert not inaccessible(one.page, axe)
    entry.get_by_role("button", name="Cancel signing in to vault").click()
    expect(link).to_be_hidden()
    assert not vault.access
    entry.get_by_role("button", name="Sign in to vault").click()
    expect(link).to_be_visible(timeout=30_000)


def resources(visit: Visitor, own: Served, folder: Path, viewport: dict[str, int]) -> Visit:
    """Open the resources of the server `demo` by keyboard alone."""
    words = ("mcp", "add", "demo", "--no-connect", "--", sys.executable, str(PROGRAM), "stdio", str(folder))
    assert own.moot.run(*words).returncode == 0
    one = visit("/settings/tools", at=own, viewport=viewport)
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.page.get_by_role("button", name="Resources from demo").focus()
    one.page.keyboard.press("Enter")
    expect(one.page.get_by_role("dialog").get_by_text("note://today")).to_be_visible(timeout=30_000)
    return one


def test_a_resource_is_copied_by_keyboard_and_sent_with_a_prompt(own: Served, visit: Visitor, tmp_path: Path, axe: str) -> None:
    one = resources(visit, own, tmp_path, {"width": 390, "height": 844})
    page, dialog = one.page, one.page.get_by_role("dialog")
    expect(dialog.get_by_text("What to do today.")).to_be_visible()
    expect(dialog.get_by_text("text/markdown")).to_be_visible()
    expect(dialog.get_by_role("listitem").filter(has_text="note://person/{name}").get_by_text("template", exact=True)).to_be_visible()
    expect(dialog.get_by_role("searchbox")).to_have_count(0)
    assert not inaccessible(page, axe)
    assert narrow(page)
    one.shot("mcp-resources-phone")
    button = dialog.get_by_role("button", name="Copy @demo:note://today")
    box = button.bounding_box()
    assert box is not None and box["height"] >= 44 and box["x"] + box["width"] <= 390
    for _ in range(20):
        if button.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("status")).to_have_text("Copied @demo:note://today")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Resources from demo")).to_be_focused()
    reference = page.evaluate("navigator.clipboard.readText()")
    one.go("/")
    field(page).fill(f"say yes {reference} ")
    page.get_by_role("button", name="Send (Enter)").click()  # on phones, Enter starts a new line
    ready(page)
    attached = messages(page).get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(attached).to_have_count(1)
    expect(attached).to_contain_text("today")


def narrow(page: Page) -> bool:
    """Return whether nothing is wider than the screen."""
    return bool(
        page.evaluate("document.documentElement.scrollWidth <= innerWidth && document.querySelector('dialog').scrollWidth <= innerWidth")
    )


def test_many_resources_are_searched(own: Served, visit: Visitor, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("30")
    one = resources(visit, own, tmp_path, {"width": 1280, "height": 800})
    dialog = one.page.get_by_role("dialog")
    search = dialog.get_by_role("searchbox", name="Search resources")
    search.fill("NOTE://page 17")
    expect(dialog.get_by_role("listitem")).to_have_count(1)
    expect(dialog.get_by_role("button", name="Copy @demo:note://page/17")).to_be_visible()
    expect(dialog.get_by_role("status")).to_have_text("1 of 35")
    search.fill("nothing like this")
    expect(dialog.get_by_role("status")).to_have_text("No matches")


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
