from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import spoken
from browser.visits import PHONE, inaccessible

VIEWS = {
    "new": "/",
    "inbox": "/inbox",
    "configuration": "/settings",
    "models": "/settings/models",
    "agents": "/settings/agents",
    "projects": "/settings/projects",
    "tasks": "/settings/tasks",
    "tools": "/settings/tools",
    "permissions": "/settings/permissions",
    "tokens": "/settings/tokens",
    "import": "/settings/import",
    "usage": "/usage",
    "appearance": "/settings/appearance",
    "about": "/settings/about",
    "nothing": "/no/such/view",
}


def settle(page: Page) -> None:
    """Wait until the view has loaded its data."""
    page.locator("main h1, main").first.wait_for()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0, timeout=20_000)


@pytest.mark.timeout(170, func_only=True)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_passes_the_accessibility_check(visit: Visitor, axe: str, theme: str, server: Served) -> None:
    conversation = server.say("say **Markdown** with `code`")
    tab = visit(theme=theme)
    wrong: list[str] = []
    for name, path in {**VIEWS, "conversation": f"/c/{conversation}"}.items():
        page = tab.go(path)
        settle(page)
        tab.shot(f"{name}-desktop-{theme}")
        counted = {tag: page.locator(tag).count() for tag in ("main", "h1")}
        if counted != {"main": 1, "h1": 1} or not page.title().endswith("moot"):
            wrong.append(f"{name}: {counted}, titled {page.title()!r}")
        wrong += [f"{name}: {line}" for line in inaccessible(page, axe)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(170, func_only=True)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_fits_a_phone_with_targets_for_a_thumb(visit: Visitor, theme: str, server: Served) -> None:
    conversation = server.say("say Hello on the phone")
    tab = visit(viewport=PHONE, theme=theme)
    wrong: list[str] = []
    for name, path in {**VIEWS, "conversation": f"/c/{conversation}"}.items():
        page = tab.go(path)
        settle(page)
        tab.shot(f"{name}-phone-{theme}")
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            wrong.append(f"{name}: {width} pixels wide")
        wrong += [f"{name}: {line}" for line in page.evaluate(SMALL)]
    assert not wrong, "\n".join(wrong)


SMALL = """() => [...document.querySelectorAll('button, a, select, input, summary')].map((one) => {
    const target = one.closest('label') ?? one
    return { one, box: target.getBoundingClientRect() }
}).filter(({ one, box }) => {
    const shown = one.checkVisibility({ visibilityProperty: true }) && box.width > 1 && box.bottom > 0
    const inText = one.tagName === 'A' && one.closest('p, dd')
    return shown && !inText && box.height < 43.5
}).map(({ one, box }) => `${one.tagName} ${one.getAttribute('aria-label') ?? one.textContent} ${box.height}`)"""
"""Targets too small for a thumb: visible, not a link in text, and lower than 44 px."""


CUT_OFF = """() => [...document.querySelectorAll('main :is(button, input, select)')].filter((one) => {
    if (!one.checkVisibility()) return false
    const edge = one.closest('dl, section ul, [role=region]')?.getBoundingClientRect().right ?? innerWidth
    return one.getBoundingClientRect().right > Math.min(edge, innerWidth)
}).map((one) => one.getAttribute('aria-label') ?? one.textContent)"""
"""Buttons and fields that reach over the edge of their table, list or window."""


@pytest.mark.parametrize("width", [1024, 1280])
def test_no_button_of_the_settings_is_cut_off(visit: Visitor, width: int) -> None:
    tab = visit(viewport={"width": width, "height": 768})
    wrong: list[str] = []
    for name, path in VIEWS.items():
        if path.startswith("/settings"):
            page = tab.go(path)
            settle(page)
            if name == "models":
                expect(page.get_by_role("button", name="Test obedient@mine")).to_be_visible()
            wrong += [f"{name}: {line}" for line in page.evaluate(CUT_OFF)]
    assert not wrong, "\n".join(wrong)


def test_high_contrast_is_a_choice_that_stays(visit: Visitor, axe: str) -> None:
    tab = visit("/settings")
    page = tab.page
    page.get_by_role("radio", name="High contrast").check(force=True)
    expect(page.locator("body")).to_have_css("color", "rgb(0, 0, 0)")
    page.reload()
    assert page.get_by_role("radio", name="High contrast").is_checked()
    settle(page)
    assert not inaccessible(page, axe)
    tab.shot("configuration-desktop-contrast")


WIDE_ANSWER = "\n".join(
    [
        "- [x] done",
        "- [ ] open with `code`",
        "",
        "|" + " A column with a long name |" * 12,
        "|" + "---|" * 12,
        "|" + " `unbreakable_content_of_a_cell` |" * 12,
        "",
        "| small |",
        "|---|",
        "| table |",
        "",
        "```python",
        *(f"value_{number} = {number}  # {'a long line ' * 20}" for number in range(80)),
        "```",
        "",
        "```python",
        "short = 1",
        "```",
        "",
        "$$",
        " + ".join(f"x_{{{number}}}^2" for number in range(60)),
        "$$",
        "",
        "$$",
        "y = 1",
        "$$",
    ]
)
"""A task list, and a table, a code block and a formula that scroll, each followed by one that doesn't."""


@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
def test_answers_with_everything_that_scrolls_pass_the_accessibility_check(visit: Visitor, axe: str, theme: str, server: Served) -> None:
    page = visit(f"/c/{spoken(server, WIDE_ANSWER)}", theme=theme).page
    log = page.get_by_role("log", name="Messages")
    expect(log.locator(".katex-display")).to_have_count(2)
    for code in log.locator("figure pre").all():
        code.scroll_into_view_if_needed()
        expect(code.locator(".token").first).to_be_attached()
    wrong = inaccessible(page, axe)
    assert not wrong, "\n".join(wrong)
    expect(log.get_by_role("checkbox", name="Task")).to_have_count(2)
    for name in ("Table", "Code", "Formula"):
        expect(log.get_by_role("group", name=name, exact=True).and_(log.locator("[tabindex='0']"))).to_have_count(1)


def test_every_setting_shows_the_file_and_line_that_set_it(visit: Visitor, server: Served) -> None:
    page = visit("/settings").page
    row = page.locator("main section li", has_text="models.main")
    assert "obedient@mine" in row.inner_text()
    assert "config.yaml:2" in row.inner_text()
    page.get_by_label("Filter settings").fill("permissions.timeout")
    assert page.locator("main section li").count() == 1
    assert "default" in page.locator("main section li").inner_text()
    assert "scripted-key" not in page.content()


def test_a_model_is_tried_from_its_row(visit: Visitor) -> None:
    page = visit("/settings/models").page
    page.get_by_role("button", name="Test obedient@mine").click()
    page.get_by_role("row", name="obedient").get_by_text("Responded").wait_for()


def test_a_token_is_shown_once_and_can_be_revoked(visit: Visitor, server: Served) -> None:
    page = visit("/settings/tokens").page
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name", exact=True).fill("a script")
    page.get_by_role("radio", name="read View conversations, runs and settings").check()
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("dialog code").inner_text()
    page.get_by_role("button", name="Done").click()
    assert secret not in page.content()
    row = page.get_by_role("row", name="a script")
    assert "read" in row.inner_text()
    row.get_by_role("button", name="Revoke a script").click()
    row.get_by_role("button", name="Yes, revoke").click()
    row.wait_for(state="detached")


def test_a_signed_out_visitor_learns_how_to_sign_in_and_can_use_a_token(visit: Visitor, server: Served) -> None:
    tab = visit(signed_in=False, allowed=("401",))
    page = tab.page
    page.get_by_role("heading", name="Sign in to moot").wait_for()
    assert "moot web" in page.inner_text("main")
    tab.shot("sign-in-desktop-light")
    page.get_by_label("Or paste a token").fill("moot_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Or paste a token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation", name="Conversations").wait_for()
    assert server.token not in page.evaluate("document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + location.href")


def test_a_view_whose_file_cannot_be_fetched_offers_a_reload(visit: Visitor) -> None:
    page = visit("/settings", allowed=("ERR_FAILED", "Failed to fetch dynamically imported module")).page
    page.route("**/assets/Usage-*.js", lambda route: route.abort())
    page.get_by_role("link", name=re.compile("^Usage")).click()
    expect(page.get_by_role("heading", name="This page couldn’t be loaded")).to_be_visible()
    page.unroute("**/assets/Usage-*.js")
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()


def test_a_tab_of_an_older_build_reloads_itself(visit: Visitor) -> None:
    page = visit("/settings", allowed=("ERR_FAILED", "Failed to fetch dynamically imported module")).page
    page.route("**/assets/Usage-*.js", lambda route: route.abort())
    newer = '<!doctype html><script type="module" src="/assets/index-newer.js"></script>'

    def upgraded(route: Route) -> None:
        if route.request.resource_type == "fetch":
            page.unroute("**/assets/Usage-*.js")
            route.fulfill(body=newer, content_type="text/html")
        else:
            route.fallback()

    page.route(re.compile(r"^http://[^/]+/$"), upgraded)
    page.get_by_role("link", name=re.compile("^Usage")).click()
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()


def test_a_page_whose_first_file_cannot_be_fetched_offers_a_reload(visit: Visitor) -> None:
    page = visit(allowed=("ERR_FAILED",)).page
    page.route("**/assets/index-*.js", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("heading", name="This page couldn’t be loaded")).to_be_visible()
    page.unroute("**/assets/index-*.js")
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/usage", "/settings/models", "/settings/import"])
def test_next_to_the_sidebar_of_a_tablet_no_label_is_cut_and_no_table_scrolls(
    visit: Visitor, server: Served, tmp_path: Path, path: str
) -> None:
    server.say("say Hello")
    server.call("POST", "/api/projects", {"name": "tablet", "root_path": str(tmp_path)})  # shows the picker of projects
    history = server.moot.home.parent / ".augment/sessions/one.json"  # is listed as a history that can't be imported
    history.parent.mkdir(parents=True, exist_ok=True)
    history.write_text("x" * 1500)
    page = visit(path, viewport={"width": 768, "height": 1024}).page
    settle(page)
    shown = page.get_by_role("button", name="Project: By folder") if path == "/" else page.get_by_role("table")
    expect(shown.first).to_be_visible()
    cut = """() => [...document.querySelectorAll('main form button span, main [role=region]:has(table)')]
        .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth).map((one) => one.outerHTML.slice(0, 200))"""
    assert page.evaluate(cut) == []
