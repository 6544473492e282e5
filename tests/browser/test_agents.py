from __future__ import annotations

import re
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
    """A separate server: several agents change every list."""
    home = tmp_path / "served"
    home.mkdir()
    with served(home) as one:
        yield one


def test_an_agent_is_created_copied_changed_and_deleted(own: Served, visit: Visitor, axe: str) -> None:
    tab = visit("/settings/agents", at=own)
    page = tab.page
    page.get_by_role("button", name="New agent").click()
    form = page.get_by_role("dialog", name="New agent")
    form.get_by_label("Name", exact=True).fill("tester")
    form.get_by_label("Instructions").fill("Write tests.")
    form.get_by_label("Tools", exact=True).fill("read_fil")
    tab.allowed = ("422",)
    form.get_by_role("button", name="Create agent").click()
    expect(form.get_by_label("Tools", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_text("Did you mean 'read_file'?")).to_be_visible()
    tab.shot("agent-new-desktop-light")
    assert not inaccessible(page, axe)
    form.get_by_label("Tools", exact=True).fill("read_file, shell")
    form.get_by_role("button", name="Create agent").click()
    expect(form).to_have_count(0)
    page.get_by_role("button", name="Edit tester").click()
    again = page.get_by_role("dialog")
    expect(again.get_by_label("Tools", exact=True)).to_have_value("read_file, shell")
    again.get_by_label("Description").fill("Writes tests")
    again.get_by_role("button", name="Save").click()
    expect(again).to_have_count(0)
    expect(page.get_by_text("Writes tests")).to_be_visible()
    page.get_by_role("button", name="Copy explorer").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("scout")
    page.get_by_role("dialog").get_by_role("button", name="Create agent").click()
    page.get_by_role("button", name="Delete tester").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete agent").click()
    expect(page.get_by_role("button", name="Edit tester")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit scout")).to_be_visible()
    tab.shot("agents-desktop-light")
    assert not inaccessible(page, axe)
    phone = visit("/settings/agents", viewport=PHONE, at=own)
    expect(phone.page.get_by_role("button", name="Edit scout")).to_be_visible()
    phone.shot("agents-phone-light")


def test_an_editor_does_not_overwrite_the_change_of_another(own: Served, visit: Visitor) -> None:
    for place, file, button, label in (
        ("/settings/agents", own.moot.home / "agents" / "tester.md", "Edit tester", "Instructions"),
        ("/settings/memory", own.moot.home / "memory" / "MEMORY.md", "Edit home/MEMORY.md", "Content"),
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text("First.\n")
        tab = visit(place, at=own)
        page = tab.page
        page.get_by_role("button", name=button).click()
        form = page.get_by_role("dialog")
        expect(form.get_by_label(label)).to_have_value(re.compile("First."))
        file.write_text("By another program.\n")
        form.get_by_label(label).fill("Mine.")
        tab.allowed = ("412",)
        form.get_by_role("button", name="Save").click()
        expect(form.get_by_text("This has been changed elsewhere")).to_be_visible()
        expect(form.get_by_label(label)).to_have_value("Mine.")
        assert file.read_text() == "By another program.\n"
        form.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog").get_by_label(label)).to_have_value(re.compile("By another program."))
        page.get_by_role("dialog").get_by_label(label).fill("Mine.")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert "Mine." in file.read_text()
