from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.test_conversation import until
from browser.visits import PHONE, inaccessible

UNCHOSEN = """
providers:
  mine: {{dialect: openai-chat, base_url: "{mine}", api_key: scripted-key, models: {{obedient: {{context: 100000}}}}}}
"""


def test_the_first_run_tests_a_model_and_saves_it(visit: Visitor, server: Served, tmp_path: Path) -> None:
    with served(tmp_path, UNCHOSEN) as fresh:
        tab = visit(at=fresh)
        offer = tab.page.get_by_role("region", name="No model selected")
        expect(offer).to_be_visible(timeout=20_000)
        tab.shot("first-run-desktop-light")
        offer.get_by_role("button", name="Use obedient@mine").click()
        expect(offer).to_have_count(0, timeout=20_000)
        until(tab.page, lambda: fresh.call("GET", "/api/config")["config"]["models"]["main"] == "obedient@mine")
        assert fresh.model.requests(), "it was written down untried"
        tab.context.close()


def test_a_provider_is_added_with_its_key_and_answers(visit: Visitor, server: Served, axe: str, tmp_path: Path) -> None:
    with served(tmp_path, UNCHOSEN) as fresh:
        url = fresh.call("GET", "/api/providers?limit=200")["data"]
        (mine,) = [one["base_url"] for one in url if one["name"] == "mine"]
        tab = visit(at=fresh, viewport=PHONE, allowed=("50[0-9]",))
        page = tab.page
        page.get_by_role("region", name="No model selected").get_by_role("button", name="Add provider").press("Enter")
        dialog = page.get_by_role("dialog", name="Add provider")
        dialog.get_by_label("Provider", exact=True).select_option("Other endpoint…")
        dialog.get_by_label("Name").fill("office")
        dialog.get_by_label("API key").fill("office-key-0123456789")
        dialog.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
        dialog.get_by_label("Model for the test").fill("obedient")
        dialog.get_by_role("button", name="Test and save").press("Enter")
        expect(dialog.get_by_role("alert")).to_be_visible()
        assert inaccessible(page, axe) == []
        tab.shot("provider-phone-light")
        dialog.get_by_label("Base URL").fill(mine)
        dialog.get_by_role("button", name="Test and save").press("Enter")
        expect(page.get_by_text("obedient@office responded in")).to_be_visible()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("region", name="No model selected")).to_have_count(0)
        page.get_by_role("textbox", name="Message", exact=True).fill("say Hello")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("log", name="Messages").get_by_text("Hello", exact=True)).to_be_visible()
        tab.context.close()
