"""moot as a model for OpenAI's official client, with each dialect behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from e2e.server.conftest import LiveServer
from moot.testing.script import Reply, ToolCall

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def _client() -> None:
    """Import the client for the first test here: it takes a second, and the other workers don't need it."""
    global openai
    import openai


TOOL: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city",
    "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.mark.parametrize("dialect", ["google", "ollama", "openai-responses"])
@pytest.mark.slow
async def test_tool_calls_and_outputs_pass_through_every_dialect(open_server: Callable[..., Any], dialect: str) -> None:
    script = [Reply(text="Let me see.", reasoning="Hm.", tool_calls=[ToolCall("weather", {"city": "Bonn"})]), Reply(text="Rain.")]
    async with open_server(script, dialect=dialect) as server:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=await server.token(), max_retries=0) as client:
            asked: Any = {"model": "scripted@mine", "tools": [TOOL]}
            first = await client.responses.create(input="How is it in Bonn?", **asked)
            (call,) = [item for item in first.output if item.type == "function_call"]
            assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Bonn"})
            output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain, 12 degrees"}
            second = await client.responses.create(input=[output], previous_response_id=first.id, **asked)
        assert second.output_text == "Rain."
        assert [request.dialect for request in server.model.requests] == [dialect, dialect]
        assert "rain, 12 degrees" in server.model.requests[1].body.decode()


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/nothing", 404), ("PUT", "/v1/models", 405), ("GET", "/v1", 404)])
async def test_an_unknown_path_is_answered_in_the_dialect(server: LiveServer, method: str, path: str, status: int) -> None:
    answer = await server.client.request(method, path)
    assert (answer.status, answer.content_type) == (status, "application/json")
    error = (await answer.json())["error"]
    assert error["type"] in ("not_found_error", "invalid_request_error")
    assert (error["code"] == "unknown_url") is (status == 404), error  # not `model_not_found`
    theirs = await server.client.request(method, "/v1/messages/batches/x")
    assert (theirs.status, (await theirs.json())["error"]["type"]) == (404, "not_found_error")


async def test_a_wrong_key_for_the_provider_is_not_an_error_of_the_server(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(status=401, error="Incorrect API key provided.", times=0)]) as server:
        call = {"model": "scripted@mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        for path, kind in (("chat/completions", "permission_error"), ("messages", "permission_error")):
            for stream in (False, True):
                answer = await server.client.post(f"/v1/{path}", json={**call, "stream": stream})
                assert (answer.status, (await answer.json())["error"]["type"]) == (403, kind), (path, stream)
