"""A prompt is kept in the browser until the server has acknowledged it, and is stored once however often it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.test_conversation import field, messages, ready, say, until
from browser.visits import OUTAGE

SLOW = "scripted@told"
CHAT = re.compile(r"/api/chat$")


@pytest.fixture
def own(server: Served, tmp_path: Path) -> Iterator[Served]:
    """A server for this test only. The fixture `server` skips the test if something that it needs is missing."""
    with served(tmp_path) as one:
        yield one


def unsent(page: Page) -> Locator:
    return page.get_by_role("list", name="Messages not sent")


def prompts(server: Served, page: Page) -> list[Any]:
    """The texts of the user's messages on the server."""
    id = page.url.rpartition("/c/")[2]
    listed = server.call("GET", f"/api/conversations/{id}/messages")["data"]
    return [part["text"] for message in listed if message["role"] == "user" for part in message["parts"]]


def test_a_new_conversation_is_not_loaded_before_the_server_has_it(visit: Visitor) -> None:
    page = visit().page
    held: list[Route] = []
    page.route(CHAT, lambda route: held.append(route))
    say(page, "say Good morning")
    until(page, lambda: bool(held))
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}$"))
    expect(messages(page).get_by_text("say Good morning")).to_be_visible()
    page.wait_for_timeout(300)  # a request that the page should not make fails the test at its end, because it gets a 404
    held[0].continue_()
    ready(page)
    expect(messages(page).get_by_text("Good morning", exact=True)).to_be_visible()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_prompt_for_a_dead_server_is_sent_when_the_server_is_back(visit: Visitor, own: Served, is_new: bool) -> None:
    page = visit("/" if is_new else f"/c/{own.say('say Before')}", at=own, allowed=(*OUTAGE, "404")).page
    expect(field(page)).to_be_editable()
    own.kill()
    say(page, "say Nothing is lost")
    expect(unsent(page).get_by_text("Not sent")).to_be_visible()
    expect(unsent(page).get_by_text("say Nothing is lost")).to_be_visible()
    expect(field(page)).to_have_value("")
    expect(page.get_by_text("Reconnecting")).to_have_count(0)  # nothing was running
    own.start()
    expect(messages(page).get_by_text("Nothing is lost", exact=True)).to_be_visible(timeout=60_000)
    expect(unsent(page)).to_have_count(0)
    ready(page)
    assert prompts(own, page) == [*([] if is_new else ["say Before"]), "say Nothing is lost"]


@pytest.mark.parametrize("is_new", [True, False])
def test_an_unsent_prompt_survives_a_reload_and_is_sent_by_retry(visit: Visitor, server: Served, is_new: bool) -> None:
    word = f"w{uuid4().hex[:8]}"
    page = visit("/" if is_new else f"/c/{server.say('say Before')}", allowed=(*OUTAGE, "ERR_FAILED", "404")).page
    page.route(CHAT, lambda route: route.abort())
    say(page, f"say {word}")
    expect(unsent(page).get_by_text(f"say {word}")).to_be_visible()
    page.reload()
    expect(unsent(page).get_by_text(f"say {word}")).to_be_visible()
    page.get_by_role("link", name="New conversation").click()
    page.get_by_role("link", name=f"Not sent: say {word}").click()  # a conversation that the server doesn't know is in no list
    page.unroute(CHAT)
    unsent(page).get_by_role("button", name="Retry").click()
    expect(messages(page).get_by_text(word, exact=True)).to_be_visible()
    expect(unsent(page)).to_have_count(0)
    ready(page)
    page.reload()
    expect(messages(page).get_by_text(word, exact=True)).to_be_visible()
    assert unsent(page).count() == 0
    assert prompts(server, page) == [*([] if is_new else ["say Before"]), f"say {word}"]


def test_a_prompt_whose_response_was_lost_is_stored_once(visit: Visitor, server: Served) -> None:
    id = server.say("say Before")
    page = visit(f"/c/{id}", allowed=(*OUTAGE, "ERR_FAILED")).page
    lost: list[str] = []

    def arrives(route: Route) -> None:
        route.fetch()
        lost.append(route.request.url)
        route.abort()

    page.route(CHAT, arrives, times=1)
    say(page, "say Only once")
    expect(messages(page).get_by_text("Only once", exact=True)).to_be_visible()
    expect(unsent(page)).to_have_count(0)
    ready(page)
    assert len(lost) == 1
    assert prompts(server, page) == ["say Before", "say Only once"]


def test_edits_and_queued_prompts_are_kept_too(visit: Visitor, own: Served) -> None:
    id = own.say("say The first way")
    page = visit(f"/c/{id}", at=own, allowed=(*OUTAGE, "ERR_FAILED")).page
    page.route(CHAT, lambda route: route.abort())
    messages(page).get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit message").fill("at leisure please")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(unsent(page).get_by_text("at leisure please")).to_be_visible()
    expect(messages(page).get_by_text("The first way", exact=True)).to_be_visible()
    page.unroute(CHAT)
    unsent(page).get_by_role("button", name="Edit").click()
    expect(field(page)).to_have_value("at leisure please")
    field(page).fill("")
    own.say("without end please", model=SLOW, conversation=id, wait=False)
    expect(messages(page).get_by_text("word word word")).to_be_visible()
    queue = re.compile(r"/api/conversations/[^/]+/messages$")
    page.route(queue, lambda route: route.abort() if route.request.method == "POST" else route.fallback())
    say(page, "say I waited")
    expect(unsent(page).get_by_text("say I waited")).to_be_visible()
    page.unroute(queue)
    unsent(page).get_by_role("button", name="Retry").click()
    expect(page.get_by_role("list", name="Queued messages").get_by_text("say I waited")).to_be_visible()
    expect(unsent(page)).to_have_count(0)


def test_a_refused_prompt_says_why_and_can_be_removed(visit: Visitor, server: Served) -> None:
    page = visit(allowed=("422", "404")).page
    problem = {"title": "Refused", "detail": "The model is gone.", "status": 422, "fix": "Choose another one."}
    page.route(CHAT, lambda route: route.fulfill(status=422, content_type="application/problem+json", json=problem))
    say(page, "say Refuse me")
    expect(unsent(page).get_by_text("The model is gone. Choose another one.")).to_be_visible()
    unsent(page).get_by_role("button", name="Remove").click()
    expect(unsent(page)).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(unsent(page).get_by_text("say Refuse me")).to_be_visible()
    unsent(page).get_by_role("button", name="Edit").click()
    expect(field(page)).to_have_value("say Refuse me")
    until(page, lambda: not page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('moot.outbox.')).length"))
