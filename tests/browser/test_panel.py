"""The panel next to a conversation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import messages, spoken
from browser.visits import DESKTOP, PHONE, inaccessible

CODE = "```python\n" + "\n".join(f"print({number})" for number in range(1, 31)) + "\n```"
STEAL = "try { parent.document.title = 'taken' } catch { title.textContent = 'Shut in' }; fetch('/api/session').catch(() => 0)"
HTML = f"```html\n<h1 id=title>A page</h1><script>{STEAL}</script>\n```"
SVG = '```svg\n<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60"><text y="20">drawn</text></svg>\n```'
PROSE = "````markdown\n# A title\n\nSome **bold** text.\n````"
SHUT_IN = ("SecurityError", "Blocked a frame", "Content Security Policy", "CORS policy", "ERR_FAILED")


def opened(page: Page, language: str) -> None:
    """Open the code block of that language in the panel."""
    block = messages(page).locator("figure").filter(has=page.get_by_text(language, exact=True))
    block.get_by_role("button", name="Open in panel").click()


def test_code_is_shown_in_a_panel_copied_and_downloaded(visit: Visitor, server: Served, axe: str) -> None:
    tab = visit(f"/c/{spoken(server, CODE)}")
    page = tab.page
    opened(page, "python")
    panel = page.get_by_role("complementary", name="python")
    expect(panel).to_be_focused()
    expect(panel.get_by_text(re.compile(r"^1\n2\n3\n[\s\S]*\n30$"))).to_be_visible()
    expect(panel.locator(".token").first).to_be_visible()
    assert inaccessible(page, axe) == []
    tab.shot("panel-code")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "code.py"
    assert Path(download.value.path()).read_text().startswith("print(1)\nprint(2)\n")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page.get_by_role("button", name="Open in panel")).to_be_focused()


@pytest.mark.parametrize(("viewport", "theme", "role"), [(DESKTOP, "dark", "complementary"), (PHONE, "light", "dialog")])
def test_pages_drawings_and_markdown_are_rendered_in_the_panel(
    visit: Visitor, server: Served, axe: str, viewport: dict[str, int], theme: str, role: Literal["complementary", "dialog"]
) -> None:
    id = spoken(server, f"{HTML}\n\n{SVG}\n\n{PROSE}")
    tab = visit(f"/c/{id}", viewport=viewport, theme=theme, allowed=SHUT_IN)
    page = tab.page
    opened(page, "html")
    panel = page.locator(f"{'aside' if role == 'complementary' else 'dialog'}").filter(has=page.locator("iframe"))
    frame = panel.frame_locator("iframe[title=Preview]")
    expect(frame.get_by_role("heading", name="Shut in")).to_be_visible()
    expect(panel.locator("iframe")).to_have_attribute("sandbox", "allow-scripts")
    assert inaccessible(page, axe) == []
    tab.shot(f"panel-html-{theme}")
    panel = page.get_by_role(role, name="html")
    panel.get_by_role("button", name="Code", exact=True).click()
    expect(panel.locator("iframe")).to_have_count(0)
    expect(panel.get_by_text("A page")).to_be_visible()
    if role == "dialog":
        box = panel.bounding_box()
        assert box is not None and (box["x"], box["y"], box["width"], box["height"]) == (0, 0, *PHONE.values())
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    opened(page, "svg")
    expect(page.get_by_role(role, name="svg").frame_locator("iframe").get_by_text("drawn")).to_be_visible()
    page.keyboard.press("Escape")
    opened(page, "markdown")
    panel = page.get_by_role(role, name="markdown")
    expect(panel.get_by_role("heading", name="A title")).to_be_visible()
    tab.shot(f"panel-markdown-{theme}")
    panel.get_by_role("button", name=re.compile("^Close")).click()
    expect(panel).to_have_count(0)


@pytest.mark.parametrize(("viewport", "theme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_the_files_changed_by_an_answer_and_by_the_conversation_are_compared(
    visit: Visitor, server: Served, axe: str, viewport: dict[str, int], theme: str
) -> None:
    name = f"notes-{theme}.txt"
    id = server.say(f'call write_file {{"path": "{name}", "content": "one\\ntwo\\nthree\\n"}}', mode="auto")
    edits = '[{"old_text": "two", "new_text": "2"}]'
    server.say(f'call edit_file {{"path": "{name}", "edits": {edits}}}', conversation=id, mode="auto")
    tab = visit(f"/c/{id}", viewport=viewport, theme=theme)
    page = tab.page
    messages(page).get_by_role("button", name="Show changed files").last.click()
    panel = page.get_by_role("dialog" if viewport is PHONE else "complementary", name="Changed files")
    expect(panel.get_by_role("button", name=re.compile(f"{name}.*modified.*\\+1.*−1"))).to_have_attribute("aria-expanded", "true")
    expect(panel.get_by_text("Removed: two").or_(panel.get_by_text("two", exact=True))).to_be_visible()
    assert inaccessible(page, axe) == []
    tab.shot(f"panel-changes-{theme}")
    panel.get_by_role("button", name="Whole conversation").click()
    file = panel.get_by_role("button", name=re.compile(f"{name}.*created.*\\+3"))
    expect(file).to_be_visible()
    expect(panel.get_by_text("two", exact=True)).to_have_count(0)
    file.click()
    expect(panel.get_by_text("three")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(messages(page).get_by_role("button", name="Show changed files").last).to_be_focused()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_another_model_answers_the_same_prompt_next_to_the_earlier_answer(
    visit: Visitor, server: Served, axe: str, viewport: dict[str, int]
) -> None:
    id = server.say("say slowly")
    tab = visit(f"/c/{id}", viewport=viewport)
    page = tab.page
    messages(page).get_by_role("button", name="Ask another model").click()
    panel = page.get_by_role("dialog" if viewport is PHONE else "complementary", name="Ask another model")
    choice = panel.get_by_label("Model", exact=True)
    expect(choice.locator("option", has_text="obedient@mine")).to_have_count(0)
    choice.select_option("scripted@told")
    assert inaccessible(page, axe) == []
    panel.get_by_role("button", name="Ask", exact=True).click()
    expect(panel.get_by_role("region", name="obedient")).to_have_text(re.compile("slowly$"))
    answer = panel.get_by_role("region", name="scripted@told")
    expect(answer).to_contain_text("word word")
    expect(answer).to_have_attribute("aria-busy", "true")
    tab.shot(f"another-{viewport['width']}")
    server.told.release()
    expect(answer).to_have_attribute("aria-busy", "false")
    panel.get_by_role("button", name="Switch back to the earlier answer").click()
    expect(panel).to_have_count(0)
    expect(messages(page).get_by_text("slowly", exact=True)).to_be_visible()
    expect(messages(page).get_by_text("1/2")).to_be_visible()
