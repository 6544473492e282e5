"""Exports with attacks in every place of a conversation, in a real browser: nothing runs, nothing is fetched."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.moot_server import Served

EVIL = (
    "\"'><script>window.acted=1</script><img src=https://evil.invalid/p.png onerror=window.acted=2>"
    "<style>@import url(https://evil.invalid/s.css)</style></details></pre></title><svg onload=window.acted=3>"
)
WORDS = (Path(__file__).parent / "hostile.txt").read_text(encoding="utf-8")
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='parent.acted=4'><script>parent.acted=5</script><image href='https://evil.invalid/i.png'/></svg>"
LINKS = ("javascript:window.acted=6", " java\tscript:window.acted=7", "data:text/html,<script>window.acted=8</script>", "//evil.invalid/x")
NAMES = """html head meta title style body header footer nav main article details summary div span h1 h2 h3 h4 h5 h6 p a ol ul li pre code
time table thead tbody tr th td em strong s blockquote hr br img figure figcaption"""
ALLOWED = set(NAMES.upper().split())


def data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


def tool(number: int, state: str, **more: Any) -> dict[str, Any]:
    call = {"type": "dynamic-tool", "toolName": f"t{EVIL}", "toolCallId": f"call{number}", "state": state}
    return {**call, "input": {EVIL: EVIL, "command": EVIL, "lines": f"{EVIL}\n{EVIL}"}, **more}


PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": WORDS},
    {"type": "reasoning", "text": f"{EVIL}\n\n{WORDS}"},
    tool(1, "output-available", output={"stdout": f"{EVIL}\n{EVIL}", EVIL: [EVIL]}),
    tool(2, "output-available", output=[{"type": "text", "text": EVIL}]),
    tool(3, "output-available", output=EVIL),
    tool(4, "output-error", errorText=EVIL),
    tool(5, "output-denied", approval={"id": "1", "approved": False, "reason": EVIL}),
    tool(6, "input-available"),
    {"type": f"tool-{EVIL}", "toolCallId": "call7", "state": "output-available", "input": EVIL, "output": EVIL},
    {"type": "file", "mediaType": "image/svg+xml", "filename": EVIL, "url": data("image/svg+xml", SVG)},
    {"type": "file", "mediaType": "text/html", "filename": EVIL, "url": data("text/html", EVIL.encode())},
    {"type": "file", "mediaType": EVIL, "filename": EVIL, "url": data("application/pdf", b"%PDF")},
    *({"type": "file", "mediaType": "image/png", "filename": EVIL, "url": link} for link in LINKS),
    *({"type": "source-url", "sourceId": "s", "url": link, "title": EVIL} for link in (*LINKS, "https://evil.invalid/source")),
    {"type": "source-document", "sourceId": "d", "mediaType": EVIL, "title": EVIL},
    {"type": "steering-message", "id": "1", "parts": [{"type": "text", "text": WORDS}]},
    {"type": "data-note", "data": {"text": EVIL}},
    {"type": "data-attempt", "data": {"step": 0, "attempt": 0}},
    {"type": "data-plan", "data": {"entries": [{"content": EVIL, "status": EVIL}]}},
    {"type": "data-subagent", "data": {"agent": EVIL, "text": WORDS}},
    {"type": "data-subagent", "data": {"agent": EVIL, "text": WORDS, "kind": "reasoning"}},
    {"type": f"data-{EVIL}", "data": EVIL},
    {"type": EVIL, EVIL: EVIL},
]


def document() -> str:
    """A conversation in the format `json` with all of it on the current branch, on another branch and in a sub-agent's conversation."""
    facts = {"model": EVIL, "provider": EVIL, "steps": [{"step": 0, "model": EVIL, "usage": {"input": 1, "output": 1}}]}

    def message(id: str, parent: str | None, role: str) -> dict[str, Any]:
        about: dict[str, Any] = {"id": id, "role": role, "parent": parent, "status": "finished", "created_at": 1_763_800_000_000}
        return {**about, "metadata": facts if role == "assistant" else {}, "parts": PARTS if role == "assistant" else PARTS[:1]}

    ways = [("a", None, "user"), ("b", "a", "assistant"), ("c", "b", "user"), ("d", "c", "user"), ("o", "a", "assistant")]
    child = {
        "conversation": {"id": "child", "title": EVIL, "head": "k", "parent_call": "call3"},
        "messages": [message("k", None, "assistant")],
        "children": [],
    }
    top = {"id": "top", "title": EVIL, "agent": EVIL[:40], "model": EVIL, "head": "d"}
    return json.dumps(
        {"moot": "conversation", "version": 1, "conversation": top, "messages": [message(*way) for way in ways], "children": [child]}
    )


@pytest.fixture(scope="module")
def conversation(server: Served, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("hostile") / f"{EVIL[:30].replace('/', '')}.json"
    file.write_text(document())
    report = json.loads(server.moot.run("import", str(file), "--json").stdout)
    return str(next(one["conversation"]["id"] for one in report["data"] if one["conversation"]["parent"] is None))


def harmless(page: Page, asked: list[str], said: list[str], own: str) -> None:
    """Open all parts, hover over every link, and check the page."""
    expect(page.get_by_text("END-OF-HOSTILE").first).to_be_attached()
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    page.keyboard.press("Tab")
    page.wait_for_timeout(300)
    assert [url for url in asked if not url.startswith("data:")] == [own] and said == []
    assert page.evaluate("window.acted ?? null") is None
    assert set(page.evaluate("[...document.querySelectorAll('*')].map(one => one.tagName)")) <= ALLOWED
    names = set(page.evaluate("[...document.querySelectorAll('*')].flatMap(one => one.getAttributeNames())"))
    assert not [name for name in names if name.startswith("on") or name in ("style", "srcdoc", "action", "formaction", "srcset")]
    links = page.evaluate("[...document.querySelectorAll('[href]')].map(one => one.getAttribute('href'))")
    assert links and all(link.startswith(("#", "http://", "https://", "mailto:")) for link in links)
    pictures = page.evaluate("[...document.querySelectorAll('[src]')].map(one => one.getAttribute('src'))")
    assert all(picture.startswith("data:image/") for picture in pictures)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


GETS_IN = """async () => {
  const stopped = []
  addEventListener('securitypolicyviolation', (event) => stopped.push(event.effectiveDirective))
  const add = (name, more) => document.body.append(Object.assign(document.createElement(name), more))
  add('script', { textContent: 'window.acted = 1' })
  add('script', { src: 'https://evil.invalid/s.js' })
  add('img', { src: 'https://evil.invalid/i.png' })
  add('iframe', { src: 'https://evil.invalid/f' })
  add('object', { data: 'https://evil.invalid/o' })
  add('video', { src: 'https://evil.invalid/v' })
  add('style', { textContent: 'body { display: none }' })
  add('link', { rel: 'stylesheet', href: 'https://evil.invalid/l.css' })
  add('base', { href: 'https://evil.invalid/' })
  document.body.insertAdjacentHTML('beforeend', '<p onclick="window.acted = 2" style="color: red">x</p>')
  document.body.lastElementChild.click()
  await fetch('https://evil.invalid/fetch').catch(() => {})
  await new Promise((then) => setTimeout(then, 300))
  return [[...new Set(stopped)].sort(), window.acted ?? null, getComputedStyle(document.body).display, document.baseURI]
}"""
"""Text that would run if it were not escaped."""
PICTURE = "document.body.append(Object.assign(new Image(), { src: 'https://evil.invalid/i.png' }))"
STOPPED = """base-uri connect-src frame-src img-src media-src object-src script-src-attr script-src-elem style-src-attr
style-src-elem"""


@pytest.mark.parametrize("form", ["export", "export --share", "preview", "share"])
def test_hostile_parts_run_and_fetch_nothing_and_the_policy_forbids_it(
    browser: Browser, server: Served, conversation: str, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "page.html"
    address = file.as_uri()
    if form == "preview":
        assert server.moot.run("share", conversation, "--preview", str(file)).returncode == 0
    elif form == "share":
        made = server.call("POST", "/api/shares", {"conversation": conversation, "expires_in": 3600})
        address = made["url"]
    else:
        assert server.moot.run(*form.split()[:1], conversation, "-f", "html", *form.split()[1:], "-o", str(file)).returncode == 0
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page, said, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    context.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    harmless(page, asked, said, address)
    if form == "share":
        page.evaluate(f"document.body.append(Object.assign(document.createElement('script'), {{ text: 'window.acted = 1' }})); {PICTURE}")
        expect(page.locator("body > img")).to_have_count(1)
        assert page.evaluate("window.acted ?? null") is None and not context.cookies()
        assert any("sandboxed" in line for line in said) and any("img-src" in line for line in said)
        server.call("DELETE", f"/api/shares/{made['id']}")
        gone = page.goto(address)
        assert gone is not None and gone.status == 404 and "Hostile" not in page.content()
    else:
        assert page.evaluate(GETS_IN) == [STOPPED.split(), None, "block", address]
    context.close()
