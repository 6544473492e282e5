"""The page loses nothing when its network, its server or its tab is interrupted; and a very long output stays cheap."""

from __future__ import annotations

import hashlib
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.test_conversation import field, messages, ready, say, until
from browser.tunnel import Tunnel
from browser.visits import OUTAGE

SLOW = "scripted@told"
LONG = 100.0
"""Milliseconds that a chunk may block the page; a few of many may take longer on a busy machine."""


@pytest.fixture
def own(server: Served, tmp_path: Path) -> Iterator[Served]:
    """A server for this test only. The fixture `server` skips the test if something that it needs is missing."""
    with served(tmp_path) as one:
        yield one


def words(page: Page) -> list[str]:
    return messages(page).locator(".prose").last.inner_text().split()


def test_an_answer_that_ends_while_the_network_is_down_is_complete_afterwards(visit: Visitor, server: Served, tmp_path: Path) -> None:
    with Tunnel() as tunnel, served(tmp_path, f'{CONFIG}server: {{{{allowed_hosts: ["127.0.0.1:{tunnel.port}"]}}}}\n') as own:
        tunnel.to = int(own.url.rpartition(":")[2])
        outside = replace(own, url=tunnel.url)
        tab = visit(at=outside, allowed=OUTAGE)
        id = own.say("slowly please", model=SLOW, wait=False)
        tab.go(f"/c/{id}")
        expect(messages(tab.page).get_by_text("word word word")).to_be_visible(timeout=15_000)
        tunnel.cut()
        tab.context.set_offline(True)
        expect(tab.page.get_by_text("Can’t reach the server")).to_be_visible(timeout=15_000)
        own.told.release()
        until(tab.page, lambda: own.ended(id))
        assert 0 < len(words(tab.page)) < 120
        tunnel.mend()
        tab.context.set_offline(False)
        expect(tab.page.get_by_text("Can’t reach the server")).to_have_count(0, timeout=20_000)
        expect(messages(tab.page).locator(".prose").last).to_have_text(("word " * 120).strip(), timeout=30_000)
        assert messages(tab.page).locator(".prose").count() == 1


def test_an_answer_that_ends_while_the_page_opens_is_shown_completely(visit: Visitor, own: Served) -> None:
    id = own.say("slowly please", model=SLOW, wait=False)
    page = visit(at=own, allowed=OUTAGE).page  # the server is stopped before the page is closed
    ended: list[bool] = []
    held: list[Route] = []
    page.route(re.compile(r"/api/conversations/[^/]+$"), lambda route: route.continue_() if ended else held.append(route))
    with page.expect_response(re.compile(r"/messages\?")) as read:  # the beginning of the answer
        page.goto(f"{own.url}/c/{id}")
    assert "streaming" in read.value.text()
    own.told.release()
    until(page, lambda: own.ended(id))
    ended.append(True)
    for route in held:
        route.continue_()
    assert held
    expect(messages(page).locator(".prose").last).to_have_text(("word " * 120).strip())
    ready(page)


def test_the_installed_page_opens_while_the_server_is_down(visit: Visitor, own: Served) -> None:
    tab = visit(at=own, allowed=OUTAGE, worker=True)
    page = tab.page
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    with page.expect_response("**/manifest.webmanifest") as manifest:
        page.evaluate("fetch('/manifest.webmanifest').then(answer => answer.text())")
    assert manifest.value.headers["content-type"] == "application/manifest+json"
    for icon in manifest.value.json()["icons"]:
        assert page.evaluate("source => fetch(source).then(answer => answer.headers.get('content-type'))", icon["src"]) == icon["type"]
    page.reload()
    assert page.evaluate("Boolean(navigator.serviceWorker.controller)")
    tab.go("/inbox")
    own.kill()
    page.goto(f"{own.url}/inbox")
    expect(page.get_by_text("Can’t reach the server")).to_be_visible()
    expect(page.get_by_role("heading", name="Inbox", level=1)).to_be_visible()
    own.start()
    expect(page.get_by_text("Can’t reach the server")).to_have_count(0)
    names = page.evaluate(
        "caches.keys().then(async names => (await Promise.all(names.map(async one => (await (await caches.open(one)).keys())"
        ".map(kept => new URL(kept.url).pathname)))).flat())"
    )
    assert "/" in names and not [name for name in names if name.startswith("/api")]


def test_a_restarted_server_resumes_the_interrupted_answer(visit: Visitor, own: Served) -> None:
    tab = visit(at=own, allowed=OUTAGE)
    id = own.say("slowly please", model=SLOW, wait=False)
    tab.go(f"/c/{id}")
    expect(messages(tab.page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    own.kill()
    expect(tab.page.get_by_text("Can’t reach the server")).to_be_visible(timeout=20_000)
    field(tab.page).fill("typed meanwhile")
    own.start()
    until(tab.page, lambda: len(own.told.requests()) == 2)
    own.told.release()
    expect(tab.page.get_by_text("Can’t reach the server")).to_have_count(0, timeout=30_000)
    # the model was called again: its first text stays visible as abandoned, and the answer is there once and completely
    expect(messages(tab.page).locator(".prose").last).to_have_text(("word " * 120).strip(), timeout=30_000)
    ready(tab.page)
    expect(field(tab.page)).to_have_value("typed meanwhile")
    field(tab.page).fill("")
    say(tab.page, "say We are back")
    expect(messages(tab.page).get_by_text("Hello from the model")).to_be_visible(timeout=20_000)
    tab.page.reload()
    expect(messages(tab.page).get_by_text("Hello from the model")).to_be_visible(timeout=20_000)


def test_a_tab_that_was_frozen_catches_up(visit: Visitor, server: Served) -> None:
    id = server.say("slowly please", model=SLOW, wait=False)
    tab = visit(f"/c/{id}", allowed=OUTAGE)
    expect(messages(tab.page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    devtools = tab.context.new_cdp_session(tab.page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    server.told.release()
    while not server.ended(id):  # while the tab is frozen
        time.sleep(0.1)
    server.say("say While you slept", conversation=id)
    devtools.send("Page.setWebLifecycleState", {"state": "active"})
    expect(messages(tab.page).get_by_text("say While you slept", exact=True)).to_be_visible(timeout=20_000)
    ready(tab.page)
    assert [text.split().count("word") for text in messages(tab.page).locator(".prose").all_inner_texts() if "word" in text] == [120]


def test_an_output_of_50_megabytes_keeps_the_page_fast_and_downloads_completely(
    visit: Visitor, server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    id = server.say("say hi")
    page = visit(f"/c/{id}").page
    page.evaluate(
        """() => {
            window.tasks = []
            const seen = (list) => window.tasks.push(...list.getEntries().map((one) => one.duration))
            new PerformanceObserver(seen).observe({ type: 'longtask' })
        }"""
    )
    server.say("count to the end", conversation=id, model=SLOW, mode="auto", directory=str(server.moot.work), wait=False)
    expect(messages(page).get_by_text("counted counted").first).to_be_visible(timeout=60_000)
    ready(page)
    assert words(page)[-300:] == ["counted"] * 300
    tasks: list[float] = page.evaluate("window.tasks")
    with capsys.disabled():
        sys.stdout.write(f"\n  behind 50 MB: 300 deltas, {len(tasks)} tasks over 50 ms, the longest {max(tasks, default=0):.0f} ms\n")
    assert sum(task > LONG for task in tasks) < 30
    line = messages(page).get_by_role("button", name="Done Run seq 1 6600000")
    if line.get_attribute("aria-expanded") != "true":  # it may still be open from the run
        line.click()
    expect(line).to_have_attribute("aria-expanded", "true")
    link = messages(page).get_by_role("link", name="Download full output")
    href = str(link.get_attribute("href"))
    request = urllib.request.Request(server.url + href, headers={"authorization": f"Bearer {server.token}"})
    found = hashlib.sha256()
    size = 0
    with urllib.request.urlopen(request, timeout=60) as answer:
        while piece := answer.read(1 << 20):
            found.update(piece)
            size += len(piece)
    assert href.endswith(found.hexdigest()) and found.hexdigest() == counted(6_600_000) and size > 50_000_000


def counted(last: int) -> str:
    """The hash of the output of `seq 1 LAST`."""
    found = hashlib.sha256()
    for begin in range(1, last + 1, 100_000):
        found.update("".join(f"{number}\n" for number in range(begin, min(begin + 100_000, last + 1))).encode())
    return found.hexdigest()
