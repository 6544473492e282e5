from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A separate server: documents change its list."""
    home = tmp_path / "served"
    home.mkdir()
    with served(home) as one:
        yield one


def test_documents_with_a_problem_are_named_with_the_reason(own: Served, visit: Visitor, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "tea.txt").write_text("Green tea.")
    (papers / "program.bin").write_bytes(b"\x7fELF\0\0")
    assert own.moot.run("knowledge", "add", str(papers)).returncode == 0
    page = visit("/settings/memory", at=own).page
    page.get_by_text("1 document with problems").click()
    expect(page.get_by_text("neither text nor a document of a known format")).to_be_visible()
    expect(page.get_by_text("program.bin", exact=False).first).to_be_visible()
    page.get_by_label("Words or a question").fill("tea")
    page.get_by_role("button", name="Search documents").click()
    expect(page.get_by_text("Green tea.")).to_be_visible()
