from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.test_conversation import until
from browser.visits import PHONE, inaccessible

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A separate server: several projects change every list."""
    home = tmp_path / "served"
    home.mkdir()
    with served(home) as one:
        yield one


def test_a_project_is_made_written_in_and_changed(own: Served, visit: Visitor, axe: str, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    own.say("say Hello from before")
    tab = visit("/settings/projects", at=own)
    page = tab.page
    page.get_by_role("button", name="New project").click()
    form = page.get_by_role("dialog", name="New project")
    form.get_by_label("Name").fill("shop")
    form.get_by_label("Folder").fill(str(root / "nowhere"))
    form.get_by_label("Context").fill("It sells lamps.")
    tab.allowed = ("400",)
    form.get_by_role("button", name="Create project").click()
    expect(form.get_by_role("alert")).to_contain_text("nowhere")
    form.get_by_label("Folder").fill(str(root))
    tab.shot("project-new-desktop-light")
    assert not inaccessible(page, axe)
    form.get_by_role("button", name="Create project").click()
    expect(form).to_have_count(0)
    page.get_by_role("button", name="Edit shop").click()
    again = page.get_by_role("dialog")
    expect(again.get_by_label("Context")).to_have_value("It sells lamps.")
    again.get_by_label("Rules").fill("Never touch prices.")
    again.get_by_role("button", name="Save").click()
    expect(again).to_have_count(0)

    tab.go("/")
    page.get_by_role("button", name="Project: by folder").click()
    page.get_by_role("listbox", name="Project").get_by_role("option", name="shop").click()
    page.get_by_role("textbox", name="Message").fill("say Hello to the lamps")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Hello to the lamps").last).to_be_visible()
    sides = page.get_by_role("navigation", name="Conversations").get_by_role("heading", level=3)
    expect(sides).to_have_text(["shop", "default"])
    tab.shot("projects-desktop-light")
    assert not inaccessible(page, axe)

    made = own.call("GET", "/api/conversations")["data"][0]
    assert (own.call("GET", f"/api/projects/{made['project']}")["rules"], made["directory"]) == ("Never touch prices.", str(root))

    page.get_by_label("Project", exact=True).first.select_option(label="shop")
    expect(page.get_by_role("navigation", name="Conversations").locator("a[href^='/c/']")).to_have_count(1)
    small = visit("/settings/projects", viewport=PHONE, theme="dark", at=own)
    small.page.get_by_role("button", name="Edit shop").click()
    small.shot("project-phone-dark")
    assert not inaccessible(small.page, axe)


def test_a_project_is_deleted_by_keyboard_and_its_conversation_moves_to_default(
    own: Served, visit: Visitor, axe: str, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    project = own.call("POST", "/api/projects", {"name": "shop", "root_path": str(root)})["id"]
    id = own.say("say Hello to the lamps")
    own.call("PATCH", f"/api/conversations/{id}", {"project": project})
    tab = visit("/settings/projects", at=own)
    page = tab.page
    chosen = page.get_by_label("Project", exact=True).first
    chosen.select_option(label="shop")
    expect(page.get_by_role("button", name="Delete default")).to_have_count(0)
    page.get_by_role("button", name="Delete shop").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete project “shop”?")
    expect(dialog).to_contain_text("Its conversations move to the project “default”.")
    expect(dialog).to_contain_text(str(root))
    assert not inaccessible(page, axe)
    tab.shot("project-delete-desktop-light")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Delete shop")).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Delete project").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Project “shop” deleted and 1 conversation moved")).to_be_visible()
    expect(page.get_by_role("heading", name="shop")).to_have_count(0)
    expect(page.get_by_role("heading", name="Projects", level=1)).to_be_focused()
    expect(chosen).to_have_value("")
    expect(page.get_by_role("navigation", name="Conversations").locator("a[href^='/c/']")).to_have_count(1)
    until(page, lambda: [each["name"] for each in own.call("GET", "/api/projects")["data"]] == ["default"])
    until(page, lambda: own.call("GET", f"/api/conversations/{id}")["project"] == "default")
    assert root.is_dir()


def test_the_settings_of_a_conversation_are_shown_and_changed(visit: Visitor, server: Served) -> None:
    id = server.say("hello with settings")
    server.call("PATCH", f"/api/conversations/{id}", {"settings": {"effort": "high", "tools": ["read_file"]}})
    page = visit(f"/c/{id}").page
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Settings…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Reasoning effort")).to_have_value("high")
    expect(dialog.get_by_label("Available tools")).to_have_value("read_file")
    dialog.get_by_label("Permission mode").select_option("Plan")
    dialog.get_by_label("Reasoning effort").select_option("Not set")
    dialog.get_by_label("Available tools").fill("read_file\nshell")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    settings = server.call("GET", f"/api/conversations/{id}")["settings"]
    assert (settings["mode"], settings["tools"], "effort" in settings) == ("plan", ["read_file", "shell"], False)
