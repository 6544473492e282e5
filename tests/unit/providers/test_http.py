from __future__ import annotations

from contextlib import aclosing

import pytest

from moot.config.settings import ProviderSettings
from moot.errors import ConfigError, ProviderError
from moot.providers._http import HttpProvider
from moot.providers.custom import Custom
from moot.testing.scripted import Reply, ScriptedServer
from moot.types.provider import ModelRequest

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(b'{"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "stream": true}', "scripted")


async def heard(provider: HttpProvider, request: ModelRequest = REQUEST) -> list[bytes]:
    """All raws of one exchange; the provider is closed after it."""
    try:
        async with aclosing(provider.stream(request)) as reads:
            return [raw async for read in reads for raw in read]
    finally:
        await provider.close()


async def test_answer_comes_as_raw_frames_of_the_body() -> None:
    async with ScriptedServer([Reply(text="Hello, world.")]) as server:
        raws = await heard(Custom(server.provider()))
    assert raws[-1] == b"data: [DONE]\n\n"
    assert all(raw.startswith(b"data: {") and raw.endswith(b"}\n\n") for raw in raws[:-1])
    assert server.requests[0].body == REQUEST.body
    assert server.requests[0].headers["authorization"] == "Bearer scripted-key"


async def test_anthropic_shape_has_its_own_path_and_key_header() -> None:
    async with ScriptedServer([Reply(text="Hello.")]) as server:
        raws = await heard(Custom(server.provider(dialect="anthropic")))
    assert raws[0].startswith(b"event: message_start\ndata: {")
    assert server.requests[0].path == "/v1/messages"
    assert server.requests[0].headers["x-api-key"] == "scripted-key"
    assert "authorization" not in server.requests[0].headers
