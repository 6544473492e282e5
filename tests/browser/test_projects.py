from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
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
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("link")).to_have_count(1)
    small = visit("/settings/projects", viewport=PHONE, theme="dark", at=own)
    small.page.get_by_role("button", name="Edit shop").click()
    small.shot("project-phone-dark")
    assert not inaccessible(small.page, axe)
