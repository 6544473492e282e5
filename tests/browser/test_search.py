from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import Locator, Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import until
from browser.visits import PHONE, inaccessible


def word() -> str:
    return f"q{uuid4().hex[:9]}"


def typed(page: Page, query: str) -> Locator:
    """The messages found for the query."""
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search and commands")
    field.fill("")
    field.press_sequentially(query)
    return page.get_by_role("group", name="Messages").get_by_role("option")


def brought(server: Served, folder: Path, texts: list[str]) -> None:
    """Create a conversation with those messages."""
    said = [{"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)]
    file = folder / f"{word()}.json"
    file.write_text(json.dumps(said))
    done = server.moot.run("import", str(file), "-f", "openai")
    assert done.returncode == 0, done.stderr


def test_a_hit_a_thousand_messages_back_is_opened_by_keyboard(visit: Visitor, server: Served, tmp_path: Path) -> None:
    far, near = word(), word()
    texts = [f"message {number} of many" for number in range(1500)]
    texts[3], texts[1490] = f"the {far} stood here", f"and {near} there"
    brought(server, tmp_path, texts)
    tab = visit()
    page = tab.page
    expect(typed(page, near).first.locator("mark")).to_have_text(near)
    expect(page.locator('[aria-selected="true"]').first).to_contain_text(near)  # the hit that Enter opens
    page.keyboard.press("Enter")
    expect(page.locator("[data-found]")).to_contain_text(near)
    expect(page.locator("[data-found]")).to_be_in_viewport()
    expect(page.locator("[data-found]")).to_be_focused()  # so that Tab continues from there
    address = page.url.partition("#")[0]
    expect(typed(page, far).first).to_be_visible()  # in the open conversation
    expect(page.locator('[aria-selected="true"]').first).to_contain_text(far)
    page.keyboard.press("Enter")
    expect(page.locator("[data-found]")).to_contain_text(far)
    expect(page.locator("[data-found]")).to_be_in_viewport()
    assert page.url.startswith(address)
    tab.shot("search-found-desktop-light")
    page.goto(page.url)  # the address opens it too
    expect(page.locator("[data-found]")).to_contain_text(far)
    expect(page.locator("[data-found]")).to_be_in_viewport()


def test_a_hit_on_another_branch_offers_a_way_back(visit: Visitor, server: Served) -> None:
    old, new = word(), word()
    id = server.say(f"say {old} first")
    (asked, _) = server.call("GET", f"/api/conversations/{id}/messages")["data"]
    server.call("PUT", f"/api/conversations/{id}/messages/{asked['id']}", {"parts": [{"type": "text", "text": f"other words {new}"}]})
    page = visit(f"/c/{id}").page
    expect(page.locator("main").get_by_text(new)).to_be_visible()
    expect(typed(page, old).last).to_be_visible()
    page.get_by_role("group", name="Messages").get_by_role("option").filter(has_text="· you ·").click()
    expect(page.locator("[data-found]")).to_contain_text(f"say {old} first")
    page.get_by_role("status", name="Notifications").get_by_role("button", name="Back").click()
    expect(page.locator("main").get_by_text(new)).to_be_visible()


def test_operators_are_suggested_and_an_incomplete_query_keeps_the_last_hits(visit: Visitor, server: Served) -> None:
    sought = word()
    server.say(f"say {sought}")
    tab = visit()
    tab.allowed = ("status of 400",)  # of the incomplete value
    page = tab.page
    found = typed(page, f"{sought} ")
    expect(found.nth(1).locator("mark").first).to_have_text(sought)  # the prompt and its answer, by the whole word
    field = page.get_by_role("combobox", name="Search and commands")
    field.press_sequentially("ro")
    page.keyboard.press("Tab")
    expect(field).to_have_value(f"{sought} role:")
    expect(page.get_by_role("group", name="Operators").get_by_role("button").first).to_have_text("role:user")
    field.press_sequentially("x")
    expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("Known values: user, assistant, system")
    expect(found.first.locator("mark").first).to_have_text(sought)
    page.keyboard.press("Backspace")
    page.keyboard.press("Tab")
    expect(field).to_have_value(f"{sought} role:user ")
    expect(found).to_have_count(1)
    expect(found.first).to_contain_text("you")
    tab.shot("search-operators-desktop-light")


def test_hits_can_be_sorted_by_relevance_and_more_loaded(visit: Visitor, server: Served, tmp_path: Path) -> None:
    sought = word()
    long = [f"{sought} and much else besides that makes it long, number {number}" for number in range(30)]
    brought(server, tmp_path, ["begin", *long[:9], sought, *long[9:]])
    page = visit().page
    found = typed(page, sought)
    expect(found).to_have_count(22)
    page.get_by_role("option", name="More messages").click()
    expect(found).to_have_count(32)
    page.get_by_role("option", name="Sort by relevance").click()
    expect(page.get_by_role("group", name="Most relevant messages").get_by_role("option").first.locator("mark")).to_have_text(sought)
    expect(page.get_by_role("group", name="Most relevant messages").get_by_role("option").first).not_to_contain_text("besides")


def test_partial_matches_are_shown_as_such(visit: Visitor, server: Served, tmp_path: Path) -> None:
    one, other = word(), word()
    brought(server, tmp_path, [f"only {one}", f"{other} and {other}", "neither"])
    page = visit().page
    typed(page, f"{one} {other}")
    some = page.get_by_role("group", name="Partial matches").get_by_role("option")
    expect(some).to_have_count(2)
    expect(page.get_by_text("No message contains all of these words")).to_be_visible()
    expect(page.get_by_role("option", name="Sort by relevance")).to_have_count(0)  # they are found


def test_semantic_search_explains_its_requirements_and_falls_back_to_text(visit: Visitor, server: Served) -> None:
    sought = word()
    server.say(f"say {sought}")
    tab = visit(allowed=("status of 400",))
    page = tab.page
    expect(typed(page, sought).first).to_be_visible()
    page.get_by_role("option", name="Search responses by meaning").click()
    said = page.get_by_role("dialog").get_by_role("status")
    expect(said).to_contain_text("which is not installed. Run moot models pull e5-small.")
    tab.shot("search-meaning-desktop-light")
    page.get_by_role("option", name="Search by keyword").click()
    expect(page.get_by_role("group", name="Messages").get_by_role("option").first.locator("mark")).to_have_text(sought)
    expect(said).not_to_contain_text("moot models pull")


def test_on_a_phone_the_search_fits_and_a_hit_is_tapped(visit: Visitor, server: Served, axe: str) -> None:
    sought = word()
    id = server.say(f"say {sought}")
    tab = visit("/", viewport=PHONE)
    page = tab.page
    found = typed(page, f"{sought} ")
    expect(found.first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert inaccessible(page, axe) == []
    tab.shot("search-phone-light")
    page.get_by_role("group", name="Operators").get_by_role("button", name="role:").click()
    expect(page.get_by_role("combobox", name="Search and commands")).to_have_value(f"{sought} role:")
    found.first.click()
    page.wait_for_url(re.compile(f"/c/{id}#"))
    expect(page.locator("[data-found]")).to_contain_text(sought)


def test_enter_before_the_results_opens_the_first_hit_of_the_typed_query(visit: Visitor, server: Served, tmp_path: Path) -> None:
    shown, meant = word(), word()
    brought(server, tmp_path, ["begin", f"{shown} there", f"and {meant} too"])
    page = visit().page
    expect(typed(page, shown).first).to_be_visible()
    held: list[Route] = []
    page.route("**/api/search?*", lambda route: held.append(route))
    field = page.get_by_role("combobox", name="Search and commands")
    field.fill(meant)
    page.keyboard.press("Enter")  # while the hits of an earlier query are still shown
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("Searching…")
    page.wait_for_timeout(300)
    assert field.is_visible() and held
    for route in held:
        route.continue_()
    expect(page.locator("[data-found]")).to_contain_text(meant)


def test_an_early_enter_is_dropped_if_typing_continues_or_nothing_is_found(visit: Visitor, server: Served) -> None:
    sought = word()
    server.say(f"say {sought}")
    page = visit().page
    found = typed(page, sought)
    expect(found.first).to_be_visible()
    field = page.get_by_role("combobox", name="Search and commands")
    held: list[Route] = []
    # so that Enter is pressed before the results arrive
    page.route(re.compile(rf"/api/search\?.*{sought}x"), lambda route: held.append(route), times=1)
    field.press_sequentially("x")
    until(page, lambda: bool(held))
    page.keyboard.press("Enter")
    held[0].continue_()
    expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("No results")
    page.keyboard.press("Backspace")
    expect(found.first.locator("mark").first).to_have_text(sought)
    page.wait_for_timeout(300)
    assert field.is_visible()


def test_values_of_this_home_are_offered_and_chosen_by_keyboard(visit: Visitor, server: Served) -> None:
    server.say("say hello")
    tab = visit()
    tab.allowed = ("status of 400",)  # of the incomplete value
    page = tab.page
    typed(page, "agent:")
    offered = page.get_by_role("group", name="Operators").get_by_role("button")
    expect(offered.nth(1)).to_be_visible()
    second = offered.nth(1).inner_text()
    expect(offered.first).to_have_attribute("aria-current", "true")
    page.keyboard.press("ArrowRight")
    expect(offered.nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("Tab")
    field = page.get_by_role("combobox", name="Search and commands")
    expect(field).to_have_value(f"{second} ")
    field.fill("project:")
    expect(offered.first).to_have_text("project:default")
    field.fill("model:")
    expect(offered.first).to_contain_text("model:")
    page.keyboard.press("ArrowLeft")  # the field itself: nothing is selected before the first suggestion
    expect(offered.first).to_have_attribute("aria-current", "true")


def test_the_palette_runs_the_command_that_the_words_name(visit: Visitor, server: Served) -> None:
    server.say("say usage of a pantry")
    page = visit().page
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search and commands").fill("usage")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
