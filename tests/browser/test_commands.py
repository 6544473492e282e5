"""Custom commands in the settings: creating, changing and deleting them, and reading those that are defined elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.visits import PHONE, inaccessible

pytestmark = pytest.mark.timeout(170, func_only=True)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A separate server: its commands change."""
    home = tmp_path / "served"
    home.mkdir()
    with served(home) as one:
        yield one


def test_a_command_is_created_changed_and_deleted(own: Served, visit: Visitor, axe: str) -> None:
    own.call("PATCH", "/api/config", {"values": {"commands.hello": {"prompt": "Say hello."}}})
    tab = visit("/settings/commands", at=own)
    page = tab.page
    page.get_by_role("button", name="New command").click()
    form = page.get_by_role("dialog", name="New command")
    form.get_by_label("Name", exact=True).fill("explain")
    form.get_by_label("Prompt").fill("Explain $1.")
    form.get_by_label("Agent").fill("nobody")
    tab.allowed = ("422",)
    form.get_by_role("button", name="Create command").click()
    expect(form.get_by_label("Agent")).to_have_attribute("aria-invalid", "true")
    tab.shot("command-form-desktop-light")
    assert not inaccessible(page, axe)
    form.get_by_label("Agent").fill("")
    form.get_by_role("button", name="Create command").click()
    expect(form).to_have_count(0)
    file = own.moot.home / "commands/explain.md"
    assert "Explain $1." in file.read_text()

    page.get_by_role("button", name="Edit explain").click()
    again = page.get_by_role("dialog", name="/explain")
    expect(again.get_by_label("Prompt")).to_have_value("Explain $1.")
    again.get_by_label("Description").fill("Explains a file")
    again.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Explains a file")).to_be_visible()

    entry = page.locator("[data-command=hello]")
    expect(entry.get_by_text("read-only")).to_be_visible()
    entry.get_by_role("button", name="Show hello").click()
    expect(page.get_by_role("dialog").get_by_text("Say hello.")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    phone = visit("/settings/commands", viewport=PHONE, theme="dark", at=own)
    expect(phone.page.get_by_role("button", name="Edit explain")).to_be_visible()
    phone.shot("commands-phone-dark")

    page.get_by_role("button", name="Delete explain").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete command").click()
    expect(page.get_by_role("button", name="Edit explain")).to_have_count(0)
    assert not file.exists()
