"""Export and sharing: the page's menus by keyboard, and exported and shared pages full of attacks."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import until
from browser.visits import PHONE, SHOTS, inaccessible

FORBIDDEN = "script, iframe, object, embed, base, link, form, video, audio, svg, math, [style], [onclick], [onerror], [onload]"
TITLE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def open_menu(page: Page, item: str) -> None:
    """Use only the keyboard."""
    page.get_by_role("button", name="More").focus()
    page.keyboard.press("Enter")
    entry = page.get_by_role("menuitem", name=item)
    expect(entry).to_be_visible()
    for _ in range(12):
        if entry.evaluate("one => one === document.activeElement"):
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def test_a_hostile_exported_page_runs_and_fetches_nothing(browser: Browser, server: Served, axe: str, tmp_path: Path) -> None:
    id = server.say("hostile <script>window.acted='prompt'</script> <img src=https://evil.invalid/prompt.png>", model="scripted@told")
    server.call("PATCH", f"/api/conversations/{id}", {"title": TITLE})
    file = tmp_path / "talk.html"
    assert server.moot.run("export", id, "-f", "html", "-o", str(file)).returncode == 0
    for name, viewport, scheme in (("desktop-light", {"width": 1280, "height": 900}, "light"), ("phone-dark", PHONE, "dark")):
        context = browser.new_context(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
        page, said, asked = context.new_page(), list[str](), list[str]()
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("dialog", lambda dialog, said=said: (said.append(dialog.message), dialog.dismiss()))
        context.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(file.as_uri())
        expect(page.get_by_text("END-OF-HOSTILE")).to_be_visible()
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        page.wait_for_timeout(300)
        assert (said, [url for url in asked if not url.startswith("data:")]) == ([], [file.as_uri()])
        assert page.locator(FORBIDDEN).count() == 0 and page.evaluate("window.acted ?? null") is None
        assert all(
            (link.get_attribute("href") or "").startswith(("#", "http://", "https://", "mailto:")) for link in page.locator("a").all()
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(page.locator("h1")).to_have_text(TITLE)
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"export-{name}.png", full_page=True)
        page.pdf(path=str(tmp_path / "talk.pdf"))
        assert (tmp_path / "talk.pdf").stat().st_size > 10_000
        # axe is injected by the debugger; its messages are not the page's
        assert inaccessible(page, axe) == []
        context.close()


def test_a_conversation_is_downloaded_from_its_menu(visit: Visitor, server: Served) -> None:
    id = server.say("say Hello")
    page = visit(f"/c/{id}").page
    open_menu(page, "Export…")
    dialog = page.get_by_role("dialog", name="Export")
    expect(dialog.get_by_role("radio", name="html")).to_be_checked()
    dialog.get_by_role("radio", name="html").focus()
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("radio", name="html")).not_to_be_checked()
    page.keyboard.press("ArrowUp")
    dialog.get_by_role("checkbox").check()
    expect(dialog.get_by_role("radio", name="recording")).to_have_count(0)
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").press("Enter")
    assert download.value.suggested_filename.endswith(".html")
    assert "<!doctype html>" in Path(download.value.path()).read_text()
    expect(dialog).to_have_count(0)


def test_markdown_is_copied_and_saved_and_the_page_is_printed(visit: Visitor, server: Served, axe: str) -> None:
    id = server.say("say **Hello** to you")
    tab = visit(f"/c/{id}", viewport=PHONE, theme="dark")
    page = tab.page
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_menu(page, "Export…")
    dialog = page.get_by_role("dialog", name="Export")
    assert inaccessible(page, axe) == []
    tab.shot("export-phone-dark")
    dialog.get_by_role("button", name="Copy as Markdown").press("Enter")
    expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    assert "**Hello** to you" in page.evaluate("navigator.clipboard.readText()")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Markdown file").press("Enter")
    assert "**Hello** to you" in Path(download.value.path()).read_text()
    page.evaluate("""() => {
        const frame = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, 'contentWindow')
        Object.defineProperty(HTMLIFrameElement.prototype, 'contentWindow', { get() {
            const view = frame.get.call(this)
            if (view) view.print = () => { window.printed = view.document.body.innerText }
            return view
        } })
    }""")  # a browser without a screen has no print dialog
    dialog.get_by_role("button", name="Print or save as PDF").press("Enter")
    until(page, lambda: bool(page.evaluate("window.printed")))
    assert "Hello to you" in page.evaluate("window.printed")
    page.evaluate("document.querySelector('iframe').contentWindow.dispatchEvent(new Event('afterprint'))")
    expect(page.locator("iframe")).to_have_count(0)


def test_a_shared_page_is_readable_until_it_is_revoked(visit: Visitor, server: Served, browser: Browser, axe: str) -> None:
    id = server.say("say mail a.b@example.org with sk-ant-api03-Vb2Qk9Xw3mZt7Lp0Rs5Yd8")
    tab = visit(f"/c/{id}")
    page = tab.page
    open_menu(page, "Share…")
    missing = page.get_by_role("region", name="Redacted content")
    expect(missing).to_contain_text("secrets")
    expect(missing).to_contain_text("emails")
    tab.shot("share-desktop-light")
    assert inaccessible(page, axe) == []
    page.get_by_role("button", name="Create link").press("Enter")
    link = page.get_by_role("dialog", name="Share link").locator("code").inner_text()
    expect(page.get_by_text("only reachable from this machine", exact=False)).to_be_visible()
    stranger = browser.new_context()
    other, said = stranger.new_page(), list[str]()
    other.on("console", lambda message: said.append(message.text))
    answer = other.goto(link)
    assert answer is not None and answer.status == 200 and not stranger.cookies() and said == []
    assert "example.org" not in other.content() and "Vb2Qk9" not in other.content()
    page.get_by_role("button", name="Done").click()
    tab.go("/settings/shares")
    page.get_by_role("button", name="Revoke").first.press("Enter")
    assert other.goto(link).ok  # it asks again
    page.get_by_role("button", name="Yes, revoke").press("Enter")
    expect(page.get_by_text("No shared links")).to_be_visible()
    answer = other.goto(link)
    assert answer is not None and answer.status == 404
    stranger.close()
