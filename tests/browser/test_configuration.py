"""Settings as forms: switches and choices save at once, lists and texts with a form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.visits import inaccessible


@pytest.fixture
def own(tmp_path: Path, server: Served) -> Iterator[Served]:
    """A server whose settings only this test changes."""
    with served(tmp_path) as one:
        yield one


def test_settings_are_changed_with_fitting_fields(own: Served, visit: Visitor, axe: str) -> None:
    def saved(section: str, name: str) -> object:
        return own.call("GET", "/api/config")["config"][section][name]

    tab = visit("/settings", at=own, allowed=("422",))
    page = tab.page
    page.get_by_role("searchbox", name="Filter settings").fill("sandbox")
    network = page.get_by_role("switch", name="Network in the sandbox")
    network.press("Space")
    expect(network).to_be_checked()
    page.get_by_role("button", name="Edit Writable folders").press("Enter")
    page.get_by_role("textbox", name="Writable folders").fill("/srv/cache\n\n~/builds\n")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_text("/srv/cache")).to_be_visible()
    assert saved("sandbox", "network") is True and saved("sandbox", "writable") == ["/srv/cache", "~/builds"]

    page.get_by_role("searchbox", name="Filter settings").fill("how long")
    expect(page.get_by_text("No matching settings.")).to_be_visible()
    page.get_by_role("searchbox", name="Filter settings").fill("")
    page.get_by_role("combobox", name="Durability").select_option("full")
    expect(page.get_by_text("storage.durability saved")).to_be_visible()
    page.get_by_role("button", name="Edit Steps per run").press("Enter")
    steps = page.get_by_role("textbox", name="Steps per run")
    steps.fill("-3")
    steps.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("limits.steps")
    steps.fill("30")
    steps.press("Enter")
    expect(steps).to_have_count(0)
    assert saved("storage", "durability") == "full" and saved("limits", "steps") == 30
    assert inaccessible(page, axe) == []
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tab.shot(f"configuration-{width}")
    tab.context.close()
