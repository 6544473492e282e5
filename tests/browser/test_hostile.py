from __future__ import annotations

import re
from uuid import uuid4

from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served

TITLE = """<img src=x onerror="window.acted='title'"><script>window.acted='title'</script> javascript:window.acted='title' ${7*7} {{7*7}}"""
ACTED = "window.acted ?? null"


def settled(page: Page) -> None:
    """Long enough for an image to fail, a frame to load or a style to be fetched."""
    page.wait_for_timeout(500)


def test_titles_are_rendered_as_plain_text_everywhere(visit: Visitor, server: Served) -> None:
    id = server.say("say Hello")
    title = f"{uuid4().hex[:6]} {TITLE}"
    server.call("PATCH", f"/api/conversations/{id}", {"title": title})
    tab = visit(f"/c/{id}")
    page = tab.page
    expect(page.get_by_role("navigation", name="Conversations").get_by_text(title).first).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type(title[:6])
    expect(page.get_by_role("option").filter(has_text=title).first).to_be_visible()
    settled(page)
    assert page.evaluate(ACTED) is None
    assert not tab.foreign


def test_a_hostile_answer_runs_and_fetches_nothing(visit: Visitor, server: Served) -> None:
    id = server.say("hostile <script>window.acted='prompt'</script> <img src=https://evil.invalid/prompt.png>", model="scripted@told")
    tab = visit(f"/c/{id}")
    page = tab.page
    expect(page.get_by_text("END-OF-HOSTILE").first).to_be_visible(timeout=20_000)
    settled(page)
    tab.shot("hostile-desktop-light")
    assert page.evaluate(ACTED) is None
    assert page.locator("main script, main object, main embed, main base, main link, main meta, main form form, main video").count() == 0
    for link in page.locator("main a").all():
        href = link.get_attribute("href") or ""
        assert href.startswith(("http://", "https://", "/", "#", "mailto:")), href
    assert page.url.startswith(server.url)
    assert not tab.foreign
    assert page.get_by_role("navigation", name="Conversations").is_visible()


def test_model_written_pages_stay_in_their_frame(visit: Visitor, server: Served) -> None:
    id = server.say("hostile", model="scripted@told")
    # the frame's own policy blocks its content; only such messages are allowed here
    inside = (
        "Content Security Policy",
        "Blocked script execution",
        "ERR_BLOCKED_BY_CSP",
        "sandboxed",
        "SecurityError",
        "Blocked a frame",
        "Failed to fetch",
        "that the policy stopped",
    )
    tab = visit(f"/c/{id}", allowed=inside)
    page = tab.page
    expect(page.get_by_text("END-OF-HOSTILE").first).to_be_visible(timeout=20_000)
    page.get_by_role("button", name=re.compile("^Show (preview|diagram|image)")).first.wait_for(state="attached")
    pressed = 0
    for _ in range(6):
        button = page.get_by_role("button", name=re.compile("^Show (preview|diagram|image)"))
        if not button.count():
            break
        button.first.click()
        pressed += 1
        settled(page)
    assert pressed == 3 and page.locator("iframe").count() == 3
    settled(page)
    settled(page)
    tab.shot("hostile-previews-desktop-light")
    assert page.evaluate(ACTED) is None
    assert page.url.startswith(server.url) and not tab.foreign
    assert {frame.url.removeprefix(server.url) for frame in page.frames[1:]} == {"/frames/frame.html"}
    for frame in page.frames[1:]:
        assert frame.evaluate("origin") == "null"
        assert frame.evaluate("(() => { try { return document.cookie } catch { return 'shut' } })()") == "shut"
        assert frame.evaluate("fetch('/api/session').then(() => 'answered', () => 'shut')") == "shut"


def test_tool_input_and_output_are_rendered_as_plain_text(visit: Visitor, server: Served) -> None:
    attack = "<img src=x onerror=window.acted=1><script>window.acted=1</script>"
    id = server.say(f"""call shell {{"command": "git status '{attack}'"}}""")
    tab = visit(f"/c/{id}")
    page = tab.page
    settled(page)
    for card in page.locator("main summary, main button[aria-expanded=false]:not([aria-haspopup])").all():
        if card.is_visible():
            card.click()
    settled(page)
    assert page.evaluate(ACTED) is None
    assert "onerror" in page.inner_text("main")
    assert not tab.foreign


def test_a_search_hit_in_hostile_text_is_plain_text(visit: Visitor, server: Served) -> None:
    word = f"needle{uuid4().hex[:6]}"
    server.say(f"""say {word} <img src=x onerror="window.acted='snippet'"> <script>window.acted='snippet'</script>""")
    tab = visit()
    page = tab.page
    page.keyboard.press("Control+k")
    page.keyboard.type(word)
    expect(page.get_by_role("group", name="Messages").get_by_role("option").first).to_contain_text("onerror")
    settled(page)
    assert page.evaluate(ACTED) is None
    assert not tab.foreign
