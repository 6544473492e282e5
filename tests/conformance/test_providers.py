from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from moot.config.home import KEY_VARIABLES
from moot.config.settings import ProviderSettings
from moot.errors import ProviderError
from moot.plugins import DIALECTS, PROVIDERS
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.exchange import ExchangeOptions
from moot.types.provider import Facts, ModelRequest, Provider, Quirks

pytestmark = pytest.mark.anyio


def computes_here(name: str) -> bool:
    """Return True if the provider has no address and takes none, so that no test server can replace it."""
    facts = getattr(PROVIDERS.load(name), "facts", Facts(name, open_ended=True))
    return not facts.base_url and not facts.open_ended and facts.free


EMBEDDED = {name for name in PROVIDERS.names() if computes_here(name)}

SERVED = [name for name in PROVIDERS.names() if name not in EMBEDDED]
REQUEST = ModelRequest(b'{"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "stream": true}', "scripted")


@pytest.fixture(params=PROVIDERS.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(name: str, server: ScriptedServer | None = None) -> Provider:
    cls = PROVIDERS.load(name)
    facts = getattr(cls, "facts", Facts(name))
    base_url = "http://127.0.0.1:1/v1"
    if server:
        base_url = server.openai_url if facts.dialect.startswith("openai-") else server.url
    provider: Provider = cls(ProviderSettings(name, base_url=base_url, api_key="key-0123456789", timeout=5))
    return provider


async def read(provider: Provider) -> AsyncIterator[bytes]:
    async with aclosing(provider.stream(REQUEST)) as reads:  # type: ignore[type-var]
        async for raws in reads:
            for raw in raws:
                yield raw


async def test_provider_has_name_dialect_and_quirks(name: str) -> None:
    provider = made(name)
    assert provider.name == name
    assert provider.dialect in DIALECTS
    assert isinstance(provider.quirks, Quirks)
    await provider.close()
    await provider.close()


async def test_a_missing_key_names_its_environment_variable(name: str) -> None:
    facts = getattr(PROVIDERS.load(name), "facts", None)
    if isinstance(facts, Facts):
        assert facts.needs_key == (name in KEY_VARIABLES)
        assert facts.name == name


@pytest.mark.parametrize("name", SERVED)
async def test_answer_is_raw_frames_that_its_dialect_reads(name: str) -> None:
    reply = Reply(text="Hello, world.", tool_calls=[ToolCall("read_file", {"path": "a"})])
    async with ScriptedServer([reply]) as server:
        provider = made(name, server)
        translator = DIALECTS.load(provider.dialect)().translator
        state, chunks = translator.open(ExchangeOptions()), []
        async with aclosing(read(provider)) as raws:  # type: ignore[type-var]
            async for raw in raws:
                state, more = translator.feed(state, raw)
                chunks.extend(more)
        await provider.close()
    more, ending = translator.close(state, "eof")
    chunks.extend(more)
    assert "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta") == "Hello, world."
    assert [chunk["input"] for chunk in chunks if chunk["type"] == "tool-input-available"] == [{"path": "a"}]
    assert (ending.finish_reason, ending.error, ending.usage.input) == ("tool-calls", None, 12)
    assert any("key-0123456789" in value for value in server.requests[0].headers.values())


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (Reply(status=401), "auth", False),
        (Reply(status=429, retry_after=2), "rate_limit", True),
        (Reply(status=529), "overloaded", True),
        (Reply(text="Hello.", cut_at_byte=100), "transport", True),
    ],
)
async def test_failure_is_a_typed_error(name: str, reply: Reply, kind: str, retryable: bool) -> None:
    async with ScriptedServer([reply]) as server:
        provider = made(name, server)
        with pytest.raises(ProviderError) as caught:
            async with aclosing(read(provider)) as raws:  # type: ignore[type-var]
                async for _ in raws:
                    pass
        await provider.close()
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert caught.value.retry_after == (2.0 if reply.retry_after else None)


@pytest.mark.parametrize("name", SERVED)
async def test_the_model_list_of_an_endpoint_is_parsed(name: str) -> None:
    async with ScriptedServer(models=("scripted", "other")) as server:
        provider = made(name, server)
        assert [str(model.id) for model in await provider.models()] == [f"scripted@{name}", f"other@{name}"]
        await provider.close()


@pytest.mark.parametrize("name", sorted(EMBEDDED - {"local"}))  # the tests don't have its weights
async def test_answer_of_a_provider_that_computes_here_is_frames_that_its_dialect_reads(name: str) -> None:
    provider = made(name)
    translator = DIALECTS.make(provider.dialect).translator
    answers: list[str] = []
    for _ in range(2):
        state, text = translator.open(ExchangeOptions()), ""
        async with aclosing(read(provider)) as raws:  # type: ignore[type-var]
            async for raw in raws:
                state, more = translator.feed(state, raw)
                text += "".join(str(chunk["delta"]) for chunk in more if chunk["type"] == "text-delta")
        _, ending = translator.close(state, "eof")
        assert (ending.error, ending.finish_reason) == (None, "stop")
        answers.append(text)
    assert answers[0]
    async with aclosing(read(provider)) as raws:  # type: ignore[type-var]
        await anext(raws)  # and is left alone
    await provider.close()


@pytest.mark.parametrize("name", sorted(EMBEDDED))
async def test_embedded_providers_list_models_without_a_server(name: str) -> None:
    provider = made(name)
    models = await provider.models()
    assert models
    assert all(model.note and model.price is not None for model in models)
    await provider.close()
