from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from browser.conftest import Visitor
from browser.moot_server import Served, served

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
        assert fresh.call("GET", "/api/config")["config"]["models"]["main"] == "obedient@mine"
        assert fresh.model.requests(), "it was written down untried"
        tab.context.close()
