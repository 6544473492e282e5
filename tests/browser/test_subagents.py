"""Sub-agents on the page: their state in the card of the call, in the list, in the inbox, and the way back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.visits import inaccessible

SMALL = {"width": 390, "height": 844}
LEAD = "  lead: {{agents: [reviewer, worker], model: obedient@mine}}\n  worker: {{tools: [shell], model: obedient@mine}}\n"


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    config = CONFIG.replace("rules: [", "rules: [{{tool: delegate, action: allow}}, ").replace("agents:\n", f"agents:\n{LEAD}")
    with served(tmp_path_factory.mktemp("family"), config) as one:
        yield one


def delegates(agent: str, prompt: str) -> str:
    return f"call delegate {json.dumps({'agent': agent, 'prompt': prompt})}"


def link_to(page: Page, agent: str) -> Locator:
    return page.get_by_role("list", name="Sub-agents").get_by_role("link", name=re.compile(f"^{agent} "))


def test_a_sub_agent_is_shown_in_the_card_of_its_call_and_in_the_list(visit: Visitor, family: Served, axe: str) -> None:
    parent = family.say(delegates("reviewer", "slowly look at it"), agent="lead", wait=False)
    tab = visit(f"/c/{parent}", at=family)
    page = tab.page
    expect(link_to(page, "reviewer")).to_contain_text("Running")
    fold = page.get_by_role("button", name="1 sub-agent", exact=True)
    expect(fold).to_have_attribute("aria-expanded", "false")
    fold.focus()
    page.keyboard.press("Enter")
    listed = page.get_by_role("navigation", name="Conversations").get_by_role(
        "link", name=re.compile("slowly look at it.*reviewer.*Running")
    )
    expect(listed).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(listed).to_be_focused()
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("link", name=re.compile("^.running. call"))).to_be_visible()
    tab.shot("sub-agent-running-desktop-light")
    assert inaccessible(page, axe) == []
    page.keyboard.press("Enter")
    back = page.get_by_role("link", name=re.compile("^Part of call delegate"))
    expect(back).to_be_visible()
    expect(listed).to_have_attribute("aria-current", "page")
    tab.shot("sub-agent-itself-desktop-light")
    family.told.release()
    back.click()
    expect(page.get_by_role("button", name="Regenerate")).to_be_visible()  # then the cards of the answer are collapsed
    page.get_by_role("button", name=re.compile("^Done Delegate reviewer")).click()
    expect(link_to(page, "reviewer")).to_contain_text("Finished")


def test_on_a_phone_the_inbox_names_the_agents_and_opens_the_one_that_asks(visit: Visitor, family: Served, axe: str) -> None:
    task = "call shell " + json.dumps({"command": "touch made-by-worker"})
    parent = family.say(delegates("worker", task), agent="lead", wait=False)
    tab = visit(f"/c/{parent}", at=family, viewport=SMALL)
    page = tab.page
    expect(link_to(page, "worker")).to_contain_text("Waiting")
    tab.shot("sub-agent-waiting-phone-light")
    assert inaccessible(page, axe) == []
    tab.go("/inbox")
    expect(page.get_by_text("lead › worker")).to_be_visible()
    tab.shot("sub-agent-inbox-phone-light")
    page.get_by_role("main").get_by_role("link", name=re.compile("^call shell")).click()
    page.get_by_role("region", name="Run a command?").get_by_role("button", name=re.compile("Allow|once")).first.click()
    page.get_by_role("button", name=re.compile("Details$")).click()
    page.get_by_role("link", name=re.compile("^Part of call delegate")).click()
    expect(page.get_by_role("button", name="Regenerate")).to_be_visible()  # then the cards of the answer are collapsed
    page.get_by_role("button", name=re.compile("^Done Delegate worker")).click()
    expect(link_to(page, "worker")).to_contain_text("Finished")
    assert (family.moot.work / "made-by-worker").exists()
