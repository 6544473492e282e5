"""`POST /v1/embeddings`, with a provider and with the embedded model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from e2e.server.http_calls import sent
from moot.testing.script import Reply
from moot.types.search import Embedder

pytestmark = pytest.mark.anyio

VECTORS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}],
    "model": "scripted",
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}
GIVEN = Reply(raw=json.dumps(VECTORS).encode(), content_type="application/json")


class Weights:
    """Embeddings without the weights of the real model: queries and passages differ."""

    model = "fixed"

    def embed(self, text: str, *, question: bool) -> bytes:
        return bytes([3, 256 - 4]) if question else bytes([4, 3])

    def near(self, vector: bytes, others: Sequence[bytes]) -> Sequence[float]:
        return [1.0 for _ in others]


class Installed:
    """The embedded model as if it were installed."""

    def here(self) -> bool:
        return True

    async def embedder(self) -> Embedder:
        return Weights()


async def test_a_provider_gets_the_request_with_its_own_name_for_the_model(open_server: Callable[..., Any]) -> None:
    async with open_server([GIVEN]) as server:
        body = {"model": "scripted@mine", "input": ["one", "two"], "dimensions": 2, "encoding_format": "float"}
        assert await sent(server.client, "POST", "/v1/embeddings", body) == {**VECTORS, "model": "scripted@mine"}
        (request,) = server.model.requests
        assert request.path == "/v1/embeddings" and request.json == {**body, "model": "scripted"}


async def test_the_official_client_reads_the_embedded_model(open_server: Callable[..., Any]) -> None:
    import openai

    async with open_server([]) as server:
        server.engine.runtime.embedders = Installed()
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=await server.token(), max_retries=0) as client:
            for form in ("float", "base64", None):
                options: Any = {} if form is None else {"encoding_format": form}
                made = await client.embeddings.create(model="e5-small", input=["one", "two"], **options)
                vectors: Any = [row.embedding for row in made.data]
                if form != "base64":
                    assert all(math.dist(vector, [0.8, 0.6]) < 1e-6 for vector in vectors) and len(vectors) == 2
            asked = await client.embeddings.create(model="e5-small", input="one", extra_body={"input_type": "query"})
            assert math.dist(asked.data[0].embedding, [0.6, -0.8]) < 1e-6 and asked.model == "e5-small" and asked.usage.total_tokens == 1
            with pytest.raises(openai.BadRequestError, match="2 dimensions, not 3"):
                await client.embeddings.create(model="e5-small", input="one", dimensions=3)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"input": "one"}, "model"),
        ({"model": "e5-small"}, "input"),
        ({"model": "e5-small", "input": []}, "input"),
        ({"model": "e5-small", "input": ["one", ""]}, "input"),
        ({"model": "e5-small", "input": [[1, 2]]}, "input"),
        ({"model": "e5-small", "input": "one", "encoding_format": "hex"}, "encoding_format"),
        ({"model": "scripted@nowhere", "input": "one"}, "nowhere"),
    ],
)
async def test_errors_have_the_format_of_the_vendor(open_server: Callable[..., Any], body: dict[str, Any], named: str) -> None:
    async with open_server([]) as server:
        server.engine.runtime.embedders = Installed()
        async with server.client.post("/v1/embeddings", json=body) as answer:
            found = await answer.json()
        assert 400 <= answer.status < 500 and named in found["error"]["message"]


async def test_a_provider_without_embeddings_and_a_refusal_are_reported(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(status=400, error="no vectors today")]) as server:
        async with server.client.post("/v1/embeddings", json={"model": "scripted@mine", "input": "one"}) as answer:
            assert answer.status >= 400 and "no vectors today" in (await answer.json())["error"]["message"]
        server.engine.runtime.settings.providers["other"] = server.model.provider("other", "anthropic")
        async with server.client.post("/v1/embeddings", json={"model": "scripted@other", "input": "one"}) as answer:
            assert answer.status == 400 and "no endpoint for embeddings" in (await answer.json())["error"]["message"]
