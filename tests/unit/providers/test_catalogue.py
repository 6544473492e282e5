from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError
from moot.plugins import PROVIDERS
from moot.providers.catalogue import cost_at, describe, known_models, listed_price, normalized_name, parse_list, price, wire_name_of
from moot.types.model import Model, ModelId, Price
from moot.types.provider import Facts
from moot.types.usage import Usage


def facts(name: str) -> Facts:
    found = PROVIDERS.load(name).facts
    assert isinstance(found, Facts)
    return found


def model(table: Price | None) -> Model:
    return Model(ModelId("big", "mine"), "big", price=table)


# ── prices ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

DEAR = Price(3000, 15000, 300, 3750)


@pytest.mark.parametrize(
    ("table", "usage", "cost"),
    [
        (DEAR, Usage(1000, 100), 1000 * 3000 + 100 * 15000),
        (DEAR, Usage(1000, 100, cache_read=600, cache_write=300), 100 * 3000 + 600 * 300 + 300 * 3750 + 100 * 15000),
        (Price(3000, 15000), Usage(1000, 0, cache_read=600), 1000 * 3000),
        (Price(0.5, 0.5), Usage(3, 0), 2),
        (DEAR, Usage(None, 100), None),
        (DEAR, Usage(100, None), None),
        (None, Usage(100, 100), None),
        (Price(input=3000), Usage(100, 100), None),
        (Price(output=3000), Usage(100, 100), None),
        (Price(0, 0, 0, 0), Usage(), 0),
        (replace(DEAR, tiers=((1000, Price(1, 1)),)), Usage(1000, 0), 3_000_000),
        (replace(DEAR, tiers=((1000, Price(1, 1)), (5000, Price(2, 2)))), Usage(1001, 0), 1001),
        (replace(DEAR, tiers=((1000, Price(1, 1)), (5000, Price(2, 2)))), Usage(5001, 0), 10002),
        (DEAR, Usage(10, 0, cache_read=50), 50 * 300),
    ],
)
def test_cost_counts_cached_tokens_at_their_own_price_and_unknown_is_none(table: Price | None, usage: Usage, cost: int | None) -> None:
    assert price(model(table), usage) == cost


counts = st.none() | st.integers(0, 10**9)
prices = st.none() | st.floats(0, 10**6)


@given(st.builds(Price, prices, prices, prices, prices), st.builds(Usage, counts, counts, counts, counts))
def test_cost_is_a_whole_number_or_unknown_and_never_negative(table: Price, usage: Usage) -> None:
    cost = price(model(table), usage)
    assert cost is None or (isinstance(cost, int) and cost >= 0)


def test_snapshot_price_is_in_nano_dollars_with_tiers() -> None:
    sonnet = describe("anthropic", facts("anthropic"), ProviderSettings("anthropic"), "claude-sonnet-4-5")
    assert sonnet.price is not None
    assert (sonnet.price.input, sonnet.price.output, sonnet.price.cache_read, sonnet.price.cache_write) == (3000, 15000, 300, 3750)
    assert sonnet.price.tiers == ((200_000, Price(6000, 22500, 600, 7500, 12_000)),)
    assert (sonnet.price.cache_write_1h, sonnet.price.web_search) == (6000, 10_000_000)
    assert (sonnet.context, sonnet.reasoning) == (200_000, True)
    assert "image" in sonnet.modalities


@pytest.mark.parametrize(
    ("usage", "tier", "cost"),
    [
        (Usage(1_000_000, 0, cache_write=1_000_000, cache_write_1h=1_000_000), "", 12_000_000_000),
        (Usage(1_000_000, 0, cache_write=1_000_000), "", 7_500_000_000),
        (Usage(100_000, 0, cache_write=100_000, cache_write_1h=60_000), "", (40 * 3750 + 60 * 6000) * 1000),
        (Usage(0, 0, web_searches=3), "", 30_000_000),
        (Usage(100_000, 1000, web_searches=1), "batch", 100_000 * 1500 + 1000 * 7500 + 10_000_000),
        (Usage(100_000, 1000), "standard", 100_000 * 3000 + 1000 * 15_000),
    ],
)
def test_cost_depends_on_cache_duration_searches_and_class_of_service(usage: Usage, tier: str, cost: int) -> None:
    sonnet = describe("anthropic", facts("anthropic"), ProviderSettings("anthropic"), "claude-sonnet-4-5")
    assert price(sonnet, usage, tier) == cost


def test_priority_and_flex_have_their_own_prices() -> None:
    table = listed_price("openai", "gpt-5")
    assert table is not None
    assert [cost_at(table, Usage(1_000_000, 0), tier) for tier in ("default", "flex", "priority")] == [
        1_250_000_000,
        625_000_000,
        2_500_000_000,
    ]


@pytest.mark.parametrize(
    "name",
    ["claude-sonnet-4.5", "copilot/claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5[1m]"],
)
def test_other_programs_names_of_a_model_have_its_price(name: str) -> None:
    assert listed_price("", name) == listed_price("anthropic", "claude-sonnet-4-5")


def test_a_price_is_that_of_the_time_of_the_call() -> None:
    june, july = (listed_price("openai", "o3", at) for at in (1_748_736_000_000, 1_751_328_000_000))
    assert june is not None and july is not None
    assert (june.input, july.input) == (10_000, 2_000)


def test_an_unknown_price_is_never_zero() -> None:
    new = describe("anthropic", facts("anthropic"), ProviderSettings("anthropic"), "claude-next-99")
    own = describe("mine", facts("custom"), ProviderSettings("mine"), "big")
    assert new.price is None
    assert own.price is None


def test_a_coding_plan_has_no_token_price() -> None:
    settings = ProviderSettings("zhipu", plan="coding")
    assert describe("zhipu", facts("zhipu"), settings, "glm-5.3").price is None
    assert describe("zhipu", facts("zhipu"), ProviderSettings("zhipu"), "glm-5.3").price is not None


def test_local_models_are_free_but_the_price_of_ollamas_cloud_is_unknown() -> None:
    ollama = PROVIDERS.load("ollama")
    assert price(ollama(ProviderSettings("ollama")).describe("qwen3:4b"), Usage()) == 0
    assert ollama(ProviderSettings("ollama")).describe("glm-5:cloud").price is None
    priced = ProviderSettings("ollama", models={"glm-5:cloud": {"price": {"input": 1, "output": 2}}})
    assert ollama(priced).describe("glm-5:cloud").price == Price(1000, 2000)


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("provider", "name", "wire_name"),
    [
        ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929"),
        ("openrouter", "claude-sonnet-4-5", "anthropic/claude-sonnet-4.5"),
        ("vercel", "grok-4.7", "xai/grok-4.7"),
        ("openrouter", "grok-4.7", "x-ai/grok-4.7"),
        ("groq", "gpt-oss-120b", "openai/gpt-oss-120b"),
        ("zhipu", "GLM-5.3", "glm-5.3"),
        ("openrouter", "glm-5.3", "z-ai/glm-5.3"),
        ("minimax", "MiniMax-M3", "MiniMax-M3"),
        ("openai", "claude-sonnet-4-5", None),
        ("custom", "anything", None),
    ],
)
def test_one_model_is_called_by_each_providers_own_name(provider: str, name: str, wire_name: str | None) -> None:
    assert wire_name_of(facts(provider), name) == wire_name


@pytest.mark.parametrize("provider", [name for name in PROVIDERS.names() if getattr(PROVIDERS.load(name), "facts", Facts("")).prices])
def test_the_model_suggested_at_first_run_has_a_price(provider: str) -> None:
    proposed = describe(provider, facts(provider), ProviderSettings(provider), facts(provider).main)
    assert proposed.wire_name == facts(provider).main
    assert proposed.price is not None


def test_spelling_is_the_same_for_the_same_model() -> None:
    assert normalized_name("anthropic/claude-sonnet-4.5") == normalized_name("Claude-Sonnet-4-5") == "claude-sonnet-4-5"


# ── the configuration ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_configuration_overrides_the_catalogue() -> None:
    overlay = {
        "context": 50_000,
        "max_output": 100,
        "modalities": ["text", "audio"],
        "tools": "schema",
        "reasoning": False,
        "wire_name": "claude-x",
        "note": "test",
        "price": {"input": 1, "output": 2.5, "cache_read": 0},
    }
    settings = ProviderSettings("anthropic", models={"claude-sonnet-4-5": overlay})
    found = describe("anthropic", facts("anthropic"), settings, "claude-sonnet-4-5")
    assert found == Model(
        ModelId("claude-sonnet-4-5", "anthropic"),
        "claude-x",
        context=50_000,
        max_output=100,
        modalities=("text", "audio"),
        tools="schema",
        price=Price(1000, 2500, 0),
        note="test",
    )
    assert known_models(facts("anthropic"), settings)[0] == "claude-sonnet-4-5"


@pytest.mark.parametrize(
    "overlay",
    [
        {"context": "50k"},
        {"context": True},
        {"context": 0},
        {"max_output": 1.5},
        {"modalities": "text"},
        {"tools": "maybe"},
        {"reasoning": "yes"},
        {"wire_name": 3},
        {"price": 3},
        {"price": {"input": "3"}},
        {"price": {"in": 3}},
        {"price": {"input": -1}},
        {"price": {"input": True}},
    ],
)
def test_field_of_the_wrong_kind_is_a_config_error_that_names_it(overlay: dict[str, object]) -> None:
    field = next(iter(overlay))
    with pytest.raises(ConfigError, match=rf"providers\.mine\.models\.big\.{field}"):
        describe("mine", facts("custom"), ProviderSettings("mine", models={"big": overlay}), "big")  # type: ignore[dict-item]


def test_endpoints_list_gets_the_catalogues_facts() -> None:
    body = json.dumps({"data": [{"id": "claude-sonnet-4-5"}, {"id": "brand-new"}, {"id": 7}, "x", {"id": "brand-new"}]}).encode()
    found = parse_list("anthropic", facts("anthropic"), ProviderSettings("anthropic"), body)
    assert [one.id.model for one in found] == ["claude-sonnet-4-5", "brand-new"]
    assert found[0].context == 200_000
    assert found[1].context is None
