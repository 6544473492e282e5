"""The section `budgets` of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.config.loader import FILE, Loaded, load
from moot.config.schedules import local_zone
from moot.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def loaded(home: Path, text: str) -> Loaded:
    (home / FILE).write_text(text)
    return load(home=home, environ={}, directory=home.parent)


def test_budgets_are_read_in_order_and_in_the_zone_of_the_machine(home: Path) -> None:
    text = """
budgets:
  monthly: {per: month, cost: 20.5, tz: Europe/Berlin}
  reviews: {per: run, tokens: 100000, agent: reviewer, user: anna, project: shop}
"""
    monthly, reviews = loaded(home, text).settings.budgets
    assert (monthly.name, monthly.per, monthly.cost, monthly.tz, monthly.ends_run) == (
        "monthly",
        "month",
        20_500_000_000,
        "Europe/Berlin",
        False,
    )
    assert (reviews.tokens, reviews.cost, reviews.agent, reviews.user, reviews.project) == (100_000, 0, "reviewer", "anna", "shop")
    assert reviews.tz == local_zone()


@pytest.mark.parametrize(
    ("entry", "column", "message"),
    [
        ("{per: day, cost: -1}", 27, "budgets.daily.cost: The value should be greater than or equal to 0, got -1."),
        ("{per: day, tokens: -1}", 29, "budgets.daily.tokens: The value should be greater than or equal to 0, got -1."),
        ("{per: day, cost: .inf}", 27, "budgets.daily.cost: Expected a number, got '.inf'."),
        ("{per: year, cost: 1}", 16, "budgets.daily.per: Expected 'run', 'day', 'week' or 'month', got 'year'."),
        ("", 3, "budgets.daily: The value is missing. Expected a mapping of keys to values."),
        ("null", 3, "budgets.daily: The value is missing. Expected a mapping of keys to values."),
        ("{cost: 1}", 3, "budgets.daily: The required key 'per' is missing."),
        ("{per: day}", 3, "budgets.daily: Expected `cost` or `tokens`, or both."),
        ("{per: day, cost: 1, tz: Mars/Base}", 3, "budgets.daily: Unknown time zone 'Mars/Base'."),
        ("{per: day, cost: 1, limit: 3}", 30, "budgets.daily: Unknown key 'limit'."),
    ],
)
def test_an_invalid_budget_is_refused_with_its_place(home: Path, entry: str, column: int, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(home, f"budgets:\n  daily: {entry}\n")
    assert (caught.value.line, caught.value.column) == (2, column) and message in caught.value.message


def test_a_budget_of_an_unknown_agent_is_reported_with_its_place(home: Path) -> None:
    found = loaded(
        home,
        "agents: {mine: {instructions: i}}\nbudgets:\n  a: {per: day, cost: 1, agent: mine}\n  b: {per: day, cost: 1, agent: nobody}\n",
    )
    assert found.doubt is not None and (found.doubt.line, found.doubt.column) == (4, 33)
    assert "budgets.b.agent: Agent 'nobody' not found. Known: default, explorer," in found.doubt.message
    assert any("'nobody' not found" in note for note in found.notes)
