"""Prices of models: the list, a newer list from a file, prices in the configuration, and the costs of imported answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make

STORES = Path(__file__).parents[1] / "recorded" / "stores"
NEWER = [
    {
        "id": "anthropic",
        "name": "Anthropic",
        "api_pattern": "https://api\\.anthropic\\.com",
        "model_match": {"contains": "claude"},
        "models": [
            {"id": "claude-sonnet-4-5", "match": {"starts_with": "claude-sonnet-4-5"}, "prices": {"input_mtok": 1, "output_mtok": 2}}
        ],
    }
]


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    shutil.copytree(STORES / "claude-band", tmp_path / "user")
    process = make(tmp_path / "user", "models: {}\n")
    yield process
    process.close()


def prices(moot: MootProcess, *arguments: str) -> dict[str, Any]:
    ended = moot.run("models", "prices", "--json", *arguments)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def cost(moot: MootProcess) -> float:
    moot.run("import", "--all")
    return json.loads(moot.run("stats", "--json").stdout)["total"]["cost"] / 1e9


def test_the_list_shows_all_kinds_of_prices_and_their_source(moot: MootProcess) -> None:
    shown = prices(moot, "claude-sonnet-4-5", "no-such-model")
    assert shown["list"].startswith("the list of genai-prices ")
    sonnet, unknown = shown["data"]
    assert {name: sonnet[name] for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h", "web_search")} == {
        "input": 3,
        "output": 15,
        "cache_read": 0.3,
        "cache_write": 3.75,
        "cache_write_1h": 6,
        "web_search": 10,
    }
    assert (sonnet["tiers"][0]["above"], sonnet["services"]["batch"]["input"]) == (200_000, 1.5)
    assert (unknown["source"], unknown["input"]) == ("unknown", None)
    ended = moot.run("models", "prices", "claude-sonnet-4-5")
    assert ended.stdout.decode().split()[-8:] == ["claude-sonnet-4-5", "3", "15", "0.3", "3.75", "6", "10", "list"]


def test_a_newer_list_applies_to_later_imports_and_an_invalid_one_changes_nothing(moot: MootProcess, tmp_path: Path) -> None:
    newer, invalid = tmp_path / "data.json", tmp_path / "invalid.json"
    newer.write_text(json.dumps(NEWER))
    invalid.write_text('{"models": 3}')
    assert prices(moot, "--from", str(newer), "claude-sonnet-4-5")["data"][0]["input"] == 1
    ended = moot.run("models", "prices", "--from", str(invalid))
    assert ended.returncode == 2 and b"is not a price list" in ended.stderr
    assert prices(moot, "claude-sonnet-4-5")["list"].startswith("the list of 20")
    assert cost(moot) == pytest.approx((610_000 * 1 + 3000 * 2) / 1e6)
    (moot.home / "prices.json").write_text("damaged")
    assert prices(moot, "claude-sonnet-4-5")["data"][0]["input"] == 3


def test_prices_in_the_configuration_take_precedence(moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    model = "claude-sonnet-4-5-20250929"
    config.write_text(
        f"providers:\n  anthropic:\n    models:\n      {model}: {{price: {{input: 10, output: 20, cache_write_1h: 30, web_search: 5}}}}\n"
    )
    own = prices(moot, model)["data"][0]
    assert (own["source"], own["input"], own["cache_write_1h"], own["web_search"]) == ("configuration", 10, 30, 5)
    assert cost(moot) == pytest.approx((610_000 * 10 + 3000 * 20) / 1e6)
