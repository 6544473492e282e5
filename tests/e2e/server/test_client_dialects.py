"""moot as a model for OpenAI's official client, with each dialect behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from moot.testing.script import Reply, ToolCall

pytestmark = pytest.mark.anyio

TOOL: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city",
    "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.mark.parametrize("dialect", ["google", "ollama", "openai-responses"])
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
