from __future__ import annotations

import re
from uuid import uuid4

from playwright.sync_api import Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import stop, until
from browser.visits import OUTAGE, inaccessible

SLOW = "scripted@told"


def composer(page: Page) -> Page:
    return page.get_by_role("textbox", name=re.compile("message", re.I)).last  # type: ignore[return-value]


def test_two_tabs_see_the_same_run_live(visit: Visitor, server: Served) -> None:
    id = server.say("say The beginning")
    one = visit(f"/c/{id}")
    two = visit(f"/c/{id}", beside=one)
    composer(one.page).fill("say Both of you see this")
    one.page.keyboard.press("Enter")
    for tab in (one, two):  # the prompt, and the answer that repeats it
        expect(tab.page.locator("main").get_by_text("Both of you see this").nth(1)).to_be_visible(timeout=20_000)


def test_a_run_of_a_terminal_is_seen_live(visit: Visitor, server: Served) -> None:
    word = f"gnu{uuid4().hex[:6]}"
    id = server.say(f"say {word}")
    tab = visit(f"/c/{id}")
    expect(tab.page.locator("main").get_by_text(word).first).to_be_visible()
    process = server.moot.start("run", "slowly please", "-c", id, "-m", SLOW)
    expect(tab.page.locator("main").get_by_text("slowly please")).to_be_visible(timeout=30_000)
    expect(tab.page.locator("main").get_by_text("word word word").first).to_be_visible(timeout=20_000)
    listed = tab.page.get_by_role("navigation", name="Conversations").locator(f'a[data-id="{id}"]')
    expect(listed.get_by_text("(running)")).to_be_attached(timeout=10_000)
    server.told.release()
    process.wait(60)
    expect(listed.get_by_text("(running)")).to_have_count(0, timeout=10_000)


def test_the_page_reports_a_lost_server_and_catches_up_later(visit: Visitor, server: Served) -> None:
    id = server.say("say Before the tunnel")
    tab = visit(f"/c/{id}", allowed=OUTAGE)
    expect(tab.page.locator("main").get_by_text("Before the tunnel").last).to_be_visible()
    tab.context.set_offline(True)
    expect(tab.page.get_by_text("Can’t reach the server")).to_be_visible(timeout=15_000)
    tab.shot("offline-desktop-light")
    server.say("say After the tunnel", conversation=id)
    tab.context.set_offline(False)
    expect(tab.page.get_by_text("Can’t reach the server")).to_have_count(0, timeout=15_000)
    expect(tab.page.locator("main").get_by_text("After the tunnel").last).to_be_visible(timeout=20_000)


def test_typing_is_not_delayed_by_a_stream(visit: Visitor, server: Served) -> None:
    tab = visit()
    page = tab.page
    id = server.say("without end", model=SLOW, wait=False)
    page.goto(f"{server.url}/c/{id}")
    expect(page.locator("main").get_by_text("word word").first).to_be_visible(timeout=20_000)
    field = composer(page)
    field.click()
    text = "typed while the answer streams in"
    page.keyboard.type(text)
    expect(field).to_have_value(text)
    stop(page)


def test_an_approval_is_answered_in_the_inbox(visit: Visitor, server: Served) -> None:
    name = f"inbox-{uuid4().hex[:6]}.txt"
    id = server.say(f'call write_file {{"path": "{name}", "content": "from the inbox"}}')
    tab = visit("/inbox")
    page = tab.page
    card = page.get_by_role("region", name=re.compile(re.escape(name)))
    expect(card).to_be_visible(timeout=10_000)
    tab.shot("inbox-waiting-desktop-light")
    page.wait_for_timeout(450)  # keys and clicks before it was readable are not answers
    card.get_by_role("button", name="Allow once").click()
    expect(card).to_have_count(0, timeout=10_000)
    until(page, lambda: server.ended(id))
    assert (server.moot.work / name).read_text() == "from the inbox"


def test_only_the_outside_agents_options_are_offered(visit: Visitor, server: Served) -> None:
    name = f"outside-{uuid4().hex[:6]}.txt"
    server.say(f'call write_file {{"path": "{name}", "content": "x"}}')
    tab = visit(allowed=("409", "400", "422"))
    page = tab.page
    options = [
        {"id": "proceed", "label": "Yes, go\u202e on", "kind": "allow_once"},
        {"id": "never", "label": "", "kind": "reject_always"},
    ]

    def told(route: Route) -> None:
        answer = route.fetch()
        asked = answer.json()
        for one in asked["data"]:
            one.update(options=options, editable=False, edits=False, lasting=[])
        route.fulfill(response=answer, json=asked)

    page.route("**/api/approvals?**", told)
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.post_data or "") if asked.method == "POST" else None)
    tab.go("/inbox")
    card = page.get_by_role("region", name=re.compile(re.escape(name)))
    expect(card.get_by_role("button", name="Yes, go\\u{202e} on")).to_be_visible(timeout=10_000)
    expect(card.get_by_role("button", name="Never allow")).to_be_visible()
    assert card.get_by_role("button", name="Edit").count() == card.get_by_role("button", name="Allow once").count() == 0
    page.wait_for_timeout(450)
    card.get_by_role("button", name="Never allow").click()
    expect(card).to_have_count(0, timeout=10_000)
    assert any('"option":"never"' in body and '"approved":false' in body for body in sent), sent


def test_a_denial_in_the_inbox_changes_nothing(visit: Visitor, server: Served) -> None:
    name = f"never-{uuid4().hex[:6]}.txt"
    id = server.say(f'call write_file {{"path": "{name}", "content": "no"}}')
    page = visit("/inbox").page
    card = page.get_by_role("region", name=re.compile(re.escape(name)))
    expect(card).to_be_visible(timeout=10_000)
    page.wait_for_timeout(450)
    card.get_by_role("button", name="Deny…").click()
    card.get_by_role("textbox").fill("Not today")
    card.get_by_role("button", name="Deny").click()
    expect(card).to_have_count(0, timeout=10_000)
    until(page, lambda: server.call("GET", f"/api/conversations/{id}")["status"] != "waiting")
    assert not (server.moot.work / name).exists()


def test_a_page_in_the_background_notifies_when_a_run_asks_or_ends(visit: Visitor, server: Served, axe: str) -> None:
    tab = visit()
    page = tab.page
    tab.context.grant_permissions(["notifications"])
    page.add_init_script(RECORDER)
    tab.go("/inbox")
    page.get_by_role("button", name="Turn on notifications").press("Enter")
    expect(page.get_by_role("button", name="Turn off notifications")).to_be_visible()
    assert inaccessible(page, axe) == []
    tab.shot("inbox-notifications-desktop-light")
    page.reload()
    expect(page.get_by_role("button", name="Turn off notifications")).to_be_visible()
    slow = server.say("slowly please", model="scripted@told", wait=False)
    expect(page.get_by_role("navigation", name="Conversations").get_by_title("running").first).to_be_visible()
    page.evaluate("document.hasFocus = () => false")
    server.told.release()
    until(page, lambda: ["slowly please", "The answer is ready"] in page.evaluate("window.notified"))
    server.say('call shell {"command": "touch notified"}')
    until(page, lambda: "Needs your answer" in str(page.evaluate("window.notified")))
    expect(page).to_have_title(re.compile(r"^\(\d+\) Inbox · moot$"))
    page.evaluate("document.hasFocus = () => true")
    page.evaluate("window.notifications[0].onclick()")
    page.wait_for_url(re.compile(f"/c/{slow}"))


RECORDER = """
    window.notified = []
    window.notifications = []
    window.Notification = class extends EventTarget {
        static permission = 'granted'
        static requestPermission = async () => 'granted'
        constructor(title, { body }) {
            super()
            window.notified.push([title, body])
            window.notifications.push(this)
        }
        close() {}
    }
"""
"""Record notifications, because a browser without a screen shows none."""
