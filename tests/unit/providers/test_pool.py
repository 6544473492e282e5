from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from moot.config.settings import Models, ProviderSettings, Settings
from moot.errors import ConfigError, UsageError
from moot.providers.pool import Providers
from moot.testing.script import Reply
from moot.testing.scripted import ScriptedServer
from moot.types.provider import ModelRequest

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(b'{"messages": [{"role": "user", "content": "hi"}]}', "scripted")

OFF = {name: ProviderSettings(name, enabled=False) for name in ("ollama", "llama-cpp", "lm-studio", "local")}
"""Nothing on this machine may influence a test."""


def settings(*entries: ProviderSettings, models: Models | None = None, off: bool = True) -> Settings:
    given = {entry.name: entry for entry in entries}
    return Settings(Path("/home/someone/moot"), models or Models(), {**(OFF if off else {}), **given})


@asynccontextmanager
async def pool(*entries: ProviderSettings, models: Models | None = None, off: bool = True) -> AsyncIterator[Providers]:
    providers = Providers(settings(*entries, models=models, off=off))
    try:
        yield providers
    finally:
        await providers.close()


ANTHROPIC = ProviderSettings("anthropic", api_key="sk-ant-0123456789")
OPENAI = ProviderSettings("openai", api_key="sk-oai-0123456789")
OPENROUTER = ProviderSettings("openrouter", api_key="sk-or-0123456789")
MINE = ProviderSettings("mine", base_url="http://127.0.0.1:9/v1", models={"big": {"context": 1000}, "org/m@2": {}})


# ── names to models ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_model_at_provider_gives_model_provider_and_dialect() -> None:
    async with pool(MINE) as providers:
        choice = await providers.choice("big@mine")
        assert (str(choice.model.id), choice.model.context) == ("big@mine", 1000)
        assert choice.provider is providers.provider("mine")
        assert choice.dialect.name == "openai-chat"


async def test_name_is_split_at_the_last_at() -> None:
    async with pool(MINE) as providers:
        assert (await providers.choice("org/m@2@mine")).model.id.model == "org/m@2"


async def test_a_bare_name_selects_the_first_provider_by_priority() -> None:
    async with pool(OPENROUTER, ANTHROPIC, MINE) as providers:
        direct = await providers.choice("claude-sonnet-4-5")
        assert str(direct.model.id) == "claude-sonnet-4-5@anthropic"
        assert str((await providers.choice("big")).model.id) == "big@mine"
    async with pool(replace(OPENROUTER, priority=1), ANTHROPIC) as providers:
        by_gateway = await providers.choice("claude-sonnet-4-5")
        assert by_gateway.model.id.provider == "openrouter"
        assert by_gateway.model.wire_name == "anthropic/claude-sonnet-4.5"


async def test_a_paid_plan_has_priority() -> None:
    async with pool(OPENROUTER, ProviderSettings("zhipu", api_key="0123456789", plan="coding"), ANTHROPIC) as providers:
        assert providers.available()[0] == "zhipu"


async def test_a_plan_has_its_own_models() -> None:
    async with pool(ProviderSettings("moonshot", api_key="0123456789", plan="coding")) as providers:
        assert str((await providers.choice()).model.id) == "kimi-for-coding@moonshot"
        assert str((await providers.choice("kimi-for-coding")).model.id) == "kimi-for-coding@moonshot"
    async with pool(ProviderSettings("moonshot", api_key="0123456789")) as providers:
        assert str((await providers.choice()).model.id) == "kimi-k3@moonshot"


async def test_a_bare_name_is_found_on_a_local_server() -> None:
    async with (
        ScriptedServer(models=("qwen3:4b",)) as server,
        pool(ANTHROPIC, ProviderSettings("ollama", base_url=server.url)) as providers,
    ):
        assert str((await providers.choice("qwen3:4b")).model.id) == "qwen3:4b@ollama"


async def test_model_types_come_from_the_configuration() -> None:
    models = Models(main="big@mine", small="demo@demo")
    async with pool(MINE, models=models) as providers:
        assert str((await providers.choice()).model.id) == "big@mine"
        assert str((await providers.choice("main")).model.id) == "big@mine"
        assert str((await providers.choice("small")).model.id) == "demo@demo"
        assert str((await providers.choice(role="compaction")).model.id) == "big@mine"
        with pytest.raises(UsageError, match="No model is configured for 'image'"):
            await providers.choice("image")


async def test_a_new_version_is_accepted_and_a_typo_is_not() -> None:
    async with pool(ANTHROPIC, MINE) as providers:
        new = await providers.choice("claude-sonnet-9-2@anthropic")
        assert (new.model.wire_name, new.model.price) == ("claude-sonnet-9-2", None)
        assert (await providers.choice("something-else@mine")).model.id.model == "something-else"
        with pytest.raises(UsageError, match=r"no model 'claud-sonnet-4-5'\. Did you mean 'claude-sonnet-4-5'"):
            await providers.choice("claud-sonnet-4-5@anthropic")


async def test_an_empty_model_selects_the_providers_default() -> None:
    async with pool(ANTHROPIC, MINE) as providers:
        assert (await providers.choice("@anthropic")).model.id.model == "claude-sonnet-5-5"


async def test_unknown_names_are_usage_errors_with_the_nearest_one() -> None:
    async with pool(ANTHROPIC) as providers:
        with pytest.raises(UsageError, match=r"Provider 'antropic' not found\. Did you mean 'anthropic'"):
            await providers.choice("x@antropic")
        with pytest.raises(
            UsageError, match=r"No available provider has a model 'claude-sonet-4-5'\. Did you mean 'claude-sonnet-4-5@anthropic'"
        ):
            await providers.choice("claude-sonet-4-5")
        with pytest.raises(UsageError, match=r"has no model 'deom'\. Did you mean 'demo'"):
            await providers.choice("deom@demo")


async def test_custom_is_not_a_provider_by_itself() -> None:
    async with pool() as providers:
        assert "custom" not in providers.names()


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_missing_key_names_the_variable_and_the_file() -> None:
    async with pool() as providers:
        with pytest.raises(
            ConfigError, match=r"Set ANTHROPIC_API_KEY, or providers\.anthropic\.api_key in /home/someone/moot/config\.yaml"
        ):
            await providers.choice("claude-sonnet-4-5@anthropic")
        with pytest.raises(ConfigError, match=r"'claude-sonnet-4-5' is available from anthropic, .*ANTHROPIC_API_KEY"):
            await providers.choice("claude-sonnet-4-5")


async def test_entry_that_points_elsewhere_needs_no_key_of_the_vendor() -> None:
    async with pool(ProviderSettings("openai", base_url="http://127.0.0.1:9/v1")) as providers:
        assert (await providers.choice("gpt-5.5@openai")).model.wire_name == "gpt-5.5"


async def test_a_disabled_provider_is_not_available() -> None:
    async with pool(replace(ANTHROPIC, enabled=False)) as providers:
        assert "anthropic" not in providers.available()
        with pytest.raises(UsageError, match="'anthropic' is disabled"):
            await providers.choice("x@anthropic")


# ── first run ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_default_model_prefers_keys_to_local_servers_to_the_embedded_model() -> None:
    async with ScriptedServer(models=("nomic-embed-text", "qwen3:4b")) as server:
        ollama = ProviderSettings("ollama", base_url=server.url)
        studio = ProviderSettings("lm-studio", base_url="http://127.0.0.1:1/v1")
        async with pool(OPENAI, ollama, studio, off=False) as providers:
            assert str((await providers.choice()).model.id) == "gpt-5.5@openai"
        async with pool(ollama, studio, off=False) as providers:
            assert str((await providers.choice()).model.id) == "qwen3:4b@ollama"
    async with pool(ollama, studio, off=False) as providers:
        assert (await providers.choice()).model.id.provider == "local"


async def test_the_default_model_can_be_the_first_of_a_custom_endpoint() -> None:
    async with pool(MINE, ProviderSettings("local"), OPENROUTER) as providers:
        assert str((await providers.choice()).model.id) == "big@mine"


async def test_the_demo_is_never_used_by_default() -> None:
    async with pool() as providers:
        with pytest.raises(UsageError, match="No model is available"):
            await providers.choice()
        assert (await providers.choice("demo")).model.note


# ── fallbacks ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_choices_are_the_model_and_its_fallbacks_each_once() -> None:
    async with pool(MINE) as providers:
        found = await providers.choices("big@mine", ("demo", "big", "claude-sonnet-4-5@anthropic", "demo@demo"))
    assert [str(choice.model.id) for choice in found] == ["big@mine", "demo@demo"]


async def test_fallback_that_does_not_exist_is_an_error() -> None:
    async with pool(MINE) as providers:
        with pytest.raises(UsageError, match="'demmo'"):
            await providers.choices("big@mine", ("x@demmo",))


# ── instances ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_reload_changes_what_changed_and_lets_open_streams_end() -> None:
    async with ScriptedServer([Reply(text="One, two, three.", delay=0.02), Reply(text="Again.")]) as server:
        before = settings(server.provider("mine"), server.provider("same"))
        providers = Providers(before)
        old, same = providers.provider("mine"), providers.provider("same")
        async with aclosing(old.stream(REQUEST)) as reads:  # type: ignore[type-var]
            await anext(reads)
            providers.update(settings(server.provider("mine", api_key="other-key-0"), server.provider("same")))
            new = (await providers.choice("scripted@mine")).provider
            raws = [raw async for read in reads for raw in read]
        assert raws[-1] == b"data: [DONE]\n\n"
        assert new is not old
        assert providers.provider("same") is same
        async with aclosing(new.stream(REQUEST)) as reads:  # type: ignore[type-var]
            assert [raw async for read in reads for raw in read]
        assert server.requests[1].headers["authorization"] == "Bearer other-key-0"
        await providers.close()


async def test_only_configured_servers_are_reported_as_not_running() -> None:
    async with pool(off=False) as providers:
        assert (await providers.models()).problems == {}
    async with pool(ProviderSettings("ollama", base_url="http://127.0.0.1:9")) as providers:
        assert (await providers.models()).problems.keys() == {"ollama"}
        assert await providers.silent() == {"ollama"}


async def test_the_list_merges_endpoints_and_configuration_and_reports_failures() -> None:
    async with ScriptedServer(models=("big", "small")) as server:
        mine = server.provider("mine", models={"big": {"context": 5}, "hidden": {}})
        async with pool(mine, ProviderSettings("gone", base_url="http://127.0.0.1:1/v1", models={"known": {}})) as providers:
            listing = await providers.models()
            only = await providers.models("mine")
    assert {str(model.id) for model in listing.models} == {"big@mine", "small@mine", "hidden@mine", "known@gone"}
    assert next(model.context for model in only.models if model.id.model == "big") == 5
    assert listing.problems.keys() == {"gone"}
