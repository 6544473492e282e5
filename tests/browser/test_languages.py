"""The page in Chinese, and the choice of the language."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.visits import PHONE, inaccessible


def lang(page: Page) -> str:
    return str(page.evaluate("document.documentElement.lang"))


def press(page: Page, name: str) -> None:
    """Move to a button with Tab and press it."""
    page.locator("main h1").focus()  # behind the list, which has the conversations of other tests
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == name:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"Tab does not reach {name}")


def test_the_language_of_the_browser_is_used_until_another_is_chosen_by_keyboard(visit: Visitor, axe: str) -> None:
    tab = visit("/settings/appearance", locale="zh-CN")
    page = tab.page
    assert lang(page) == "zh-Hans"
    expect(page.get_by_role("link", name="新对话")).to_be_visible()
    expect(page.get_by_role("button", name="自动")).to_have_attribute("aria-pressed", "true")
    assert not inaccessible(page, axe)
    tab.shot("appearance-chinese")

    press(page, "English")
    expect(page.get_by_role("heading", name="Appearance")).to_be_visible()
    assert lang(page) == "en"
    expect(page.get_by_role("button", name="English")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Dark").press("Enter")
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()

    page.keyboard.press("Control+k")
    page.keyboard.type("简体中文")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="外观")).to_be_visible()
    press(page, "自动")
    expect(page.get_by_role("button", name="自动")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("localStorage.getItem('moot.language')") is None


def test_chinese_conversations_and_lists_fit_a_phone(visit: Visitor, server: Served, axe: str) -> None:
    id = server.say('call shell {"command": "touch here"}', wait=False)
    tab = visit(f"/c/{id}", viewport=PHONE, locale="zh-CN")
    page = tab.page
    expect(page.get_by_role("heading", name="运行一条命令？")).to_be_visible()
    expect(page.get_by_role("button", name="允许一次")).to_be_enabled()
    expect(page.get_by_role("textbox", name="消息")).to_be_visible()
    for path, title in (("", ""), ("/usage", "用量"), ("/settings/permissions", "权限"), ("/settings/appearance", "外观")):
        if path:
            tab.go(path)
            expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert not inaccessible(page, axe), path
        tab.shot(f"chinese-{title or 'conversation'}-phone")
    server.stop_runs()


def test_a_reload_is_offered_in_chinese_if_the_chinese_texts_cannot_be_fetched(visit: Visitor) -> None:
    tab = visit("/settings/appearance", locale="zh-CN", allowed=("net::ERR_FAILED", "Failed to fetch"))
    page = tab.page
    page.route("**/assets/text.zh-*.js", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("heading", name="页面加载失败")).to_be_visible()
    page.unroute_all()
    page.get_by_role("button", name="重新加载").click()
    expect(page.get_by_role("heading", name="外观")).to_be_visible()
