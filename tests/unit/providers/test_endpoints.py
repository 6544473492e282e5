from __future__ import annotations

import asyncio

import pytest

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError, ProviderError
from moot.providers.endpoints.servers import Custom, Ollama
from moot.providers.endpoints.vendors import Zhipu
from moot.testing.scripted import ScriptedServer
from unit.providers.endpoint import heard, raw_server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "url", ["ftp://host/v1", "127.0.0.1:9000", "http://", "http://host:99999/v1", "http://host:x/v1", "http://me:pw@host/v1"]
)
def test_an_invalid_base_url_is_a_config_error_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url of the provider 'mine'") as caught:
        Custom(ProviderSettings("mine", base_url=url))
    assert "pw" not in caught.value.message


def test_a_custom_endpoint_needs_a_base_url() -> None:
    with pytest.raises(ConfigError, match="no base_url"):
        Custom(ProviderSettings("mine"))


def test_unknown_dialect_and_plan_are_config_errors() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown dialect 'klingon'\. Known dialects: anthropic, google, ollama, openai-chat, openai-responses"
    ):
        Custom(ProviderSettings("mine", dialect="klingon", base_url="http://host"))
    with pytest.raises(ConfigError, match=r"no plan 'code'\. Known plans: china, china-coding, coding"):
        Zhipu(ProviderSettings("zhipu", plan="code"))


def test_a_plan_selects_its_base_url_unless_one_is_configured() -> None:
    assert Zhipu(ProviderSettings("zhipu", plan="coding")).base.geturl() == "https://api.z.ai/api/coding/paas/v4"
    assert Zhipu(ProviderSettings("zhipu", plan="coding", base_url="http://host/x/")).base.geturl() == "http://host/x"


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:11434", "http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1"])
def test_ollama_adds_the_version_to_its_openai_url(url: str) -> None:
    assert Ollama(ProviderSettings("ollama", base_url=url)).base.geturl() == "http://127.0.0.1:11434"
    for dialect in ("openai-chat", "openai-responses"):
        assert Ollama(ProviderSettings("ollama", base_url=url, dialect=dialect)).base.geturl() == "http://127.0.0.1:11434/v1"


async def test_key_with_a_line_break_is_refused_without_showing_it() -> None:
    provider = Custom(ProviderSettings("mine", base_url="http://127.0.0.1:1/v1", api_key="secret-one\nsecret-two"))
    with pytest.raises(ConfigError, match="header 'Authorization'") as caught:
        await heard(provider)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("quirks", [{"max_tokns": "x"}, ["max_tokens"], {"max_tokens": 3}, {"stream_usage": "yes"}])
def test_an_unknown_quirk_is_a_config_error(quirks: object) -> None:
    with pytest.raises(ConfigError, match="quirks"):
        Custom(ProviderSettings("mine", base_url="http://host", options={"quirks": quirks}))  # type: ignore[dict-item]


def test_configured_quirks_are_used() -> None:
    custom = Custom(ProviderSettings("mine", base_url="http://host", options={"quirks": {"max_tokens": "max_completion_tokens"}}))
    assert custom.quirks.max_tokens == "max_completion_tokens"


async def test_endpoint_lists_its_models() -> None:
    async with ScriptedServer(models=("big", "small")) as server:
        provider = Custom(server.provider())
        assert [str(model.id) for model in await provider.models()] == ["big@mine", "small@mine"]
        await provider.close()


@pytest.mark.parametrize(
    ("head", "body", "kind"),
    [
        ("200 OK", b"<html>", "protocol"),
        ("200 OK", b"{}", "protocol"),
        ("200 OK", b'{"data": {"id": "x"}}', "protocol"),
        ("401 No", b'{"error": "no"}', "auth"),
    ],
)
async def test_an_invalid_model_list_is_a_typed_error(head: str, body: bytes, kind: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (head.encode(), len(body), body))

    async with raw_server(speak) as settings:
        provider = Custom(settings)
        with pytest.raises(ProviderError) as caught:
            await provider.models()
        await provider.close()
    assert caught.value.kind == kind


async def test_ollama_is_available_only_if_it_lists_a_model() -> None:
    async with ScriptedServer(models=("qwen3:4b",)) as server:
        ollama = Ollama(ProviderSettings("ollama", base_url=server.url))
        assert await ollama.listening()
        await ollama.close()
    gone = Ollama(ProviderSettings("ollama", base_url=server.url))
    assert not await gone.listening()
    await gone.close()
    async with ScriptedServer(models=()) as empty:
        ollama = Ollama(ProviderSettings("ollama", base_url=empty.url))
        assert not await ollama.listening()
        await ollama.close()
