"""Anthropic's official client with moot as its model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent

if TYPE_CHECKING:
    import anthropic

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def _client() -> None:
    """Import the client for the first test here: it takes a second, and the other workers don't need it."""
    global anthropic
    import anthropic


MODEL = "scripted@mine"
TOOL: Any = {
    "name": "weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@asynccontextmanager
async def client_of(server: Any, **more: Any) -> AsyncGenerator[anthropic.AsyncAnthropic, None]:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key=await server.token(**more), max_retries=0) as client:
        yield client


def user(text: str) -> Any:
    return {"role": "user", "content": text}


async def test_a_plain_model_answers(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Hello there.")]) as server, client_of(server) as client:
        answer = await client.messages.create(
            model=MODEL, max_tokens=50, system="Be brief.", messages=[user("Hi")], extra_body={"temperature": 0.5}
        )
        assert [block.type for block in answer.content] == ["text"] and answer.stop_reason == "end_turn"
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (12, 7)
        sent = server.model.requests[0].json
        assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        assert (sent["max_tokens"], sent["temperature"]) == (50, 0.5)


async def test_callers_tools_are_returned_to_the_caller(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="Let me see.", tool_calls=[ToolCall("weather", {"city": "Bonn"})]), Reply(text="Rain.")]
    async with open_server(script) as server, client_of(server) as client:
        talk: list[Any] = [user("How is it?")]
        first = await client.messages.create(model=MODEL, max_tokens=50, messages=talk, tools=[TOOL], tool_choice={"type": "any"})
        assert first.stop_reason == "tool_use"
        call = first.content[-1]
        assert call.type == "tool_use" and call.input == {"city": "Bonn"}
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "rain, 12 degrees"}
        talk += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = await client.messages.create(model=MODEL, max_tokens=50, messages=talk, tools=[TOOL])
        assert second.content[0].type == "text" and second.content[0].text == "Rain."
        sent = server.model.requests[1].json["messages"]
        assert [message["role"] for message in sent] == ["user", "assistant", "tool"] and sent[2]["content"] == "rain, 12 degrees"
        assert len((await server.engine.store.conversations.list()).items) == 1


async def test_the_streaming_helper_collects_the_whole_message(open_server: Callable[..., Any]) -> None:
    calls = [ToolCall("weather", {"city": "Bonn"}), ToolCall("weather", {"city": "Ulm"})]
    async with open_server([Reply(text="One two three.", tool_calls=calls)]) as server, client_of(server) as client:
        async with client.messages.stream(model=MODEL, max_tokens=50, messages=[user("Count")], tools=[TOOL]) as stream:
            heard = "".join([text async for text in stream.text_stream])
            final = await stream.get_final_message()
        assert heard == "One two three."
        assert [block.type for block in final.content] == ["text", "tool_use", "tool_use"]
        assert final.content[2].type == "tool_use" and final.content[2].input == {"city": "Ulm"}
        assert final.stop_reason == "tool_use" and final.usage.input_tokens == 12


async def test_thinking_is_returned_on_request_and_sent_back_with_its_signature(open_server: Callable[..., Any]) -> None:
    script = [
        Reply(reasoning="Hm.", signature="c2ln", text="Let me see.", tool_calls=[ToolCall("weather", {"city": "Bonn"})]),
        Reply(text="Rain."),
        Reply(reasoning="Hm.", text="Yes."),
    ]
    async with open_server(script, dialect="anthropic") as server, client_of(server) as client:
        talk: list[Any] = [user("How is it?")]
        thinking: Any = {"type": "enabled", "budget_tokens": 2000}
        async with client.messages.stream(model=MODEL, max_tokens=4000, messages=talk, tools=[TOOL], thinking=thinking) as stream:
            first = await stream.get_final_message()
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
        assert first.content[0].type == "thinking" and first.content[0].signature == "c2ln"
        call = first.content[2]
        assert call.type == "tool_use"
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
        talk += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        await client.messages.create(model=MODEL, max_tokens=4000, messages=talk, tools=[TOOL], thinking=thinking)
        blocks = server.model.requests[1].json["messages"][1]["content"]
        assert blocks[0] == {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
        plain = await client.messages.create(model=MODEL, max_tokens=50, messages=[user("Sure?")])
        assert [block.type for block in plain.content] == ["text"]


async def test_a_schema_and_an_image_reach_the_model(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text='{"city": "Bonn"}')]) as server, client_of(server) as client:
        source: Any = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        content: Any = [{"type": "image", "source": source}, {"type": "text", "text": "Where?"}]
        form: Any = {"format": {"type": "json_schema", "schema": TOOL["input_schema"]}}
        await client.messages.create(model=MODEL, max_tokens=50, messages=[{"role": "user", "content": content}], output_config=form)
        assert server.model.requests[0].json["response_format"]["json_schema"]["schema"] == TOOL["input_schema"]


async def test_an_agent_answers(open_server: Callable[..., Any]) -> None:
    script = [Reply(tool_calls=[ToolCall("list_files", {"path": "."})]), Reply(text="Nothing there.")]
    agents = {"helper": Agent("helper", tools=("list_files",))}
    async with open_server(script, agents=agents) as server, client_of(server, scopes=["tools"]) as client:
        answer = await client.messages.create(model="agent:helper", max_tokens=50, messages=[user("What is there?")])
        assert [block.type for block in answer.content] == ["text"] and answer.stop_reason == "end_turn"


async def test_the_list_of_models_is_paginated(open_server: Callable[..., Any]) -> None:
    async with open_server() as server, client_of(server, scopes=["read"]) as client:
        names = [model.id async for model in client.models.list(limit=1)]
        assert "agent:default" in names and MODEL in names
        assert (await client.models.retrieve(MODEL)).display_name == MODEL
        count = await client.messages.count_tokens(model=MODEL, messages=[user("Hello there, how are you?")])
        assert 0 < count.input_tokens < 30


async def test_errors_raise_the_clients_own_exceptions(open_server: Callable[..., Any]) -> None:
    script = [Reply(status=529, error="busy", times=3)]
    async with open_server(script) as server, client_of(server) as client:
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.create(model="nothing@nowhere", max_tokens=5, messages=[user("x")])
        bad: Any = [{"role": "user", "content": [{"type": "video"}]}]
        with pytest.raises(anthropic.BadRequestError, match="video"):
            await client.messages.create(model=MODEL, max_tokens=5, messages=bad)
        with pytest.raises(anthropic.APIStatusError) as busy:
            await client.messages.create(model=MODEL, max_tokens=5, messages=[user("x")])
        assert busy.value.status_code == 529
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="wrong", max_retries=0) as stranger:
            with pytest.raises(anthropic.AuthenticationError):
                await stranger.messages.create(model=MODEL, max_tokens=5, messages=[user("x")])
        bearer = anthropic.AsyncAnthropic(base_url=server.url, auth_token=await server.token(scopes=["read"]), max_retries=0)
        async with bearer:
            with pytest.raises(anthropic.PermissionDeniedError):
                await bearer.messages.create(model=MODEL, max_tokens=5, messages=[user("x")])


async def test_a_model_that_breaks_off_ends_the_stream_with_an_error(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="One two three four five six.", cut_at_byte=900)]) as server, client_of(server) as client:
        heard = ""
        with pytest.raises(anthropic.APIStatusError):
            async with client.messages.stream(model=MODEL, max_tokens=50, messages=[user("x")]) as stream:
                async for text in stream.text_stream:
                    heard += text
        assert heard.startswith("One")
