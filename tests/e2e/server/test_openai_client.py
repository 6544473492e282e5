"""OpenAI's official client with moot as its model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from e2e.server.http_calls import called
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent

if TYPE_CHECKING:
    import openai

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def _client() -> None:
    """Import the client for the first test here: it takes a second, and the other workers don't need it."""
    global openai
    import openai


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
FLAT = {"type": "function", "strict": False, **TOOL["function"]}
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MODEL = "scripted@mine"


@asynccontextmanager
async def client_of(server: Any, **more: Any) -> AsyncGenerator[openai.AsyncOpenAI, None]:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=await server.token(**more), max_retries=0) as client:
        yield client


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def test_a_plain_model_answers_with_usage_and_without_moots_instructions(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="Hello there.", usage={"input": 7, "output": 3})]
    async with open_server(script) as server, client_of(server) as client:
        answer = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "system", "content": "Be brief."}, user("Hi")], temperature=0.5, max_tokens=50, stop=["END"]
        )
        assert answer.choices[0].message.content == "Hello there." and answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None and answer.usage.total_tokens == 10
        sent = server.model.requests[0].json
        assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        assert (sent["temperature"], sent["max_tokens"], sent["stop"]) == (0.5, 50, ["END"])
        assert "tools" not in sent


async def test_a_stream_sends_deltas_and_then_the_usage(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="One two three.", reasoning="Hm.")]) as server, client_of(server) as client:
        stream = await client.chat.completions.create(
            model=MODEL, messages=[user("Count")], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "One two three."
    reasoning = [getattr(choice.delta, "reasoning_content", None) or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(reasoning) == "Hm."
    assert chunks[-1].choices == [] and chunks[-1].usage is not None
    assert chunks[-2].choices[0].finish_reason == "stop"


async def test_callers_tools_are_returned_to_the_caller(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="Let me see.", tool_calls=[ToolCall("weather", {"city": "Bonn"})]), Reply(text="Rain.")]
    async with open_server(script) as server, client_of(server) as client:
        messages: list[Any] = [user("How is it in Bonn?")]
        first = await client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL], tool_choice="required")
        assert first.choices[0].finish_reason == "tool_calls"
        (call,) = first.choices[0].message.tool_calls or []
        assert (call.function.name, call.function.arguments) == ("weather", '{"city":"Bonn"}')
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "rain, 12 degrees"}]
        second = await client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
        assert second.choices[0].message.content == "Rain."
        assert server.model.requests[0].json["tool_choice"] == "required"
        sent = server.model.requests[1].json["messages"]
        assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
        assert sent[2]["content"] == "rain, 12 degrees" and sent[1]["content"] == "Let me see."
        conversations = (await server.engine.store.conversations.list()).items
        assert [conversation.message_count for conversation in conversations] == [4]


async def test_the_streaming_helper_collects_text_and_calls(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="Let me see.", tool_calls=[ToolCall("weather", {"city": "Bonn"}), ToolCall("weather", {"city": "Ulm"})])]
    async with (
        open_server(script) as server,
        client_of(server) as client,
        client.chat.completions.stream(model=MODEL, messages=[user("Both?")], tools=[TOOL]) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert "content.delta" in kinds and "tool_calls.function.arguments.delta" in kinds
    calls = final.choices[0].message.tool_calls or []
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Bonn"}, {"city": "Ulm"}]


class Weather(BaseModel):
    city: str
    degrees: int


async def test_a_schema_reaches_the_model_and_its_answer_is_parsed(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text='{"city": "Bonn", "degrees": 12}')]) as server, client_of(server) as client:
        parsed = await client.chat.completions.parse(model=MODEL, messages=[user("?")], response_format=Weather)
        assert parsed.choices[0].message.parsed == Weather(city="Bonn", degrees=12)
        assert server.model.requests[0].json["response_format"]["json_schema"]["schema"]["properties"].keys() == {"city", "degrees"}


async def test_an_image_reaches_the_model_and_is_stored_as_a_blob(open_server: Callable[..., Any]) -> None:
    async with open_server() as server, client_of(server) as client:
        seeing = server.model.provider("mine", models={"scripted": {"modalities": ["text", "image"]}})
        server.engine.providers.update(replace(server.engine.settings, providers={"mine": seeing}))
        pieces: list[Any] = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}]
        await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": pieces}])
        (conversation,) = (await server.engine.store.conversations.list()).items
        branch = await server.engine.store.conversations.branch(conversation.id)
        assert [str(part.get("url", ""))[:5] for part in branch[0].parts] == ["", "blob:"]
        assert server.model.requests[0].json["messages"][0]["content"] == pieces
        bad: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}
        with pytest.raises(openai.BadRequestError, match="not valid base64"):
            await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": [bad]}])


async def test_a_dialogue_continues_its_conversation_and_branches_when_history_differs(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Blue.", times=2), Reply(text="Green.", times=0)]) as server, client_of(server) as client:
        talk: list[Any] = [user("A colour?")]
        first = await client.chat.completions.create(model=MODEL, messages=talk)
        talk += [{"role": "assistant", "content": first.choices[0].message.content}, user("Another?")]
        await client.chat.completions.create(model=MODEL, messages=talk)
        await client.chat.completions.create(model=MODEL, messages=[*talk[:2], user("A darker one?")])
        (conversation,) = (await server.engine.store.conversations.list()).items
        assert conversation.message_count == 6
        branch = await server.engine.store.conversations.branch(conversation.id)
        assert [message.parts[0]["text"] for message in branch if message.role == "user"] == ["A colour?", "A darker one?"]
        assert [message["content"] for message in server.model.requests[2].json["messages"]] == ["A colour?", "Blue.", "A darker one?"]
        await client.chat.completions.create(model=MODEL, messages=[user("A colour?")])
        assert len((await server.engine.store.conversations.list()).items) == 2


async def test_a_long_history_is_not_stored_again_with_each_call(open_server: Callable[..., Any]) -> None:
    async with open_server() as server, client_of(server) as client:
        talk: list[Any] = []
        for number in range(35):
            talk += [user(f"question {number}"), {"role": "assistant", "content": f"an answer of another model, {number}"}]
        await client.chat.completions.create(model=MODEL, messages=[*talk, user("Now?")])
        runs = await server.engine.store.records.runs()
        assert len(runs[0].settings["served"]["history"]) == 2 + 7
        assert len(server.model.requests[0].json["messages"]) == 71


async def test_a_conversation_can_be_named(open_server: Callable[..., Any]) -> None:
    async with open_server() as server, client_of(server) as client:
        named = {"x-moot-conversation": "my-notes"}
        await client.chat.completions.create(model=MODEL, messages=[user("One")], extra_headers=named)
        await client.chat.completions.create(model=MODEL, messages=[user("Two")], extra_headers=named)
        (conversation,) = (await server.engine.store.conversations.list()).items
        assert conversation.key == "v1:my-notes" and conversation.message_count == 4
        sent = [message["content"] for message in server.model.requests[1].json["messages"]]
        assert sent == ["One", "Hello there.", "Two"]
        whole: list[Any] = [user("One"), {"role": "assistant", "content": "Hello there."}, user("Three")]
        await client.chat.completions.create(model=MODEL, messages=whole, extra_headers=named)
        sent = [message["content"] for message in server.model.requests[2].json["messages"]]
        assert sent == ["One", "Hello there.", "Three"]
        (conversation,) = (await server.engine.store.conversations.list()).items
        branch = await server.engine.store.conversations.branch(conversation.id)
        assert [message.parts[0]["text"] for message in branch if message.role == "user"] == ["One", "Three"]


async def test_an_agent_uses_its_own_tools_and_returns_only_its_answer(open_server: Callable[..., Any]) -> None:
    script = [Reply(tool_calls=[ToolCall("list_files", {"path": "."})]), Reply(text="Nothing there.")]
    agents = {"helper": Agent("helper", instructions="You help.", tools=("list_files",))}
    async with open_server(script, agents=agents) as server, client_of(server, scopes=["tools"]) as client:
        stream = await client.chat.completions.create(
            model="agent:helper", messages=[{"role": "system", "content": "In French."}, user("What is there?")], stream=True
        )
        chunks = [chunk async for chunk in stream]
        assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Nothing there."
        assert not any(choice.delta.tool_calls for chunk in chunks for choice in chunk.choices)
        system = server.model.requests[0].json["messages"][0]["content"]
        assert system.startswith("You help.") and system.endswith("In French.")


async def test_an_agent_can_use_its_own_tools_and_the_callers(open_server: Callable[..., Any]) -> None:
    both = [ToolCall("list_files", {"path": "."}), ToolCall("weather", {"city": "Bonn"})]
    script = [Reply(text="Looking.", tool_calls=both), Reply(text="Done.")]
    agents = {"helper": Agent("helper", tools=("list_files",))}
    async with open_server(script, agents=agents) as server, client_of(server, scopes=["tools"]) as client:
        talk: list[Any] = [user("Go")]
        first = await client.chat.completions.create(model="agent:helper", messages=talk, tools=[TOOL])
        (call,) = first.choices[0].message.tool_calls or []
        assert call.function.name == "weather"
        talk += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sun"}]
        second = await client.chat.completions.create(model="agent:helper", messages=talk, tools=[TOOL])
        assert second.choices[0].message.content == "Done."
        outputs = [message["content"] for message in server.model.requests[1].json["messages"] if message["role"] == "tool"]
        assert len(outputs) == 2 and outputs[1] == "sun"


async def test_responses_are_created_and_continued_by_id(open_server: Callable[..., Any]) -> None:
    script = [Reply(reasoning="Hm.", text="Blue."), Reply(text="Green.")]
    async with open_server(script) as server, client_of(server) as client:
        first = await client.responses.create(model=MODEL, input="A colour?", instructions="Be brief.")
        assert first.output_text == "Blue." and first.status == "completed"
        assert [item.type for item in first.output] == ["reasoning", "message"]
        second = await client.responses.create(model=MODEL, input="Another?", previous_response_id=first.id)
        assert second.output_text == "Green." and second.previous_response_id == first.id
        assert [message["content"] for message in server.model.requests[1].json["messages"]] == ["A colour?", "Blue.", "Another?"]
        again = await client.responses.retrieve(second.id)
        assert again.output_text == "Green."
        (conversation,) = (await server.engine.store.conversations.list()).items
        assert conversation.message_count == 4


async def test_responses_stream_and_the_helper_collects_them(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="Let me see.", tool_calls=[ToolCall("weather", {"city": "Bonn"})]), Reply(text="Rain.")]
    async with open_server(script) as server, client_of(server) as client:
        async with client.responses.stream(model=MODEL, input="How is it?", tools=[FLAT]) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_response()
        assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
        call = final.output[-1]
        assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Bonn"}
        output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
        raw = await client.responses.create(model=MODEL, input=[output], previous_response_id=final.id, tools=[FLAT], stream=True)
        events = [event async for event in raw]
        assert [event.delta for event in events if event.type == "response.output_text.delta"] != []
        sent = server.model.requests[1].json["messages"]
        assert [message["role"] for message in sent] == ["user", "assistant", "tool"] and sent[2]["content"] == "rain"


async def test_responses_accept_images_and_schemas(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text='{"city": "Bonn", "degrees": 12}')]) as server, client_of(server) as client:
        content: list[Any] = [{"type": "input_text", "text": "?"}, {"type": "input_image", "image_url": PNG, "detail": "low"}]
        parsed = await client.responses.parse(model=MODEL, input=[{"role": "user", "content": content}], text_format=Weather)
        assert parsed.output_parsed == Weather(city="Bonn", degrees=12)


async def test_models_and_agents_are_listed(open_server: Callable[..., Any]) -> None:
    async with open_server(agents={"helper": Agent("helper")}) as server, client_of(server, scopes=["read"]) as client:
        names = [model.id async for model in client.models.list()]
        agents = [name for name in names if name.startswith("agent:")]
        assert names[: len(agents)] == agents and {"agent:default", "agent:helper"} <= {*agents} and MODEL in names
        assert (await client.models.retrieve(MODEL)).id == MODEL
        assert (await client.models.retrieve("agent:helper")).owned_by == "moot"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("agent:nobody")


async def test_errors_raise_the_clients_own_exceptions(open_server: Callable[..., Any]) -> None:
    script = [Reply(status=429, retry_after=61, error="slow down", times=3), Reply(status=400, error="no such thing", times=0)]
    async with open_server(script) as server, client_of(server) as client:
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="nothing@nowhere", messages=[user("x")])
        assert unknown.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError, match="temperature"):
            await client.chat.completions.create(model=MODEL, messages=[user("x")], temperature=9)
        with pytest.raises(openai.RateLimitError) as limited:
            await client.chat.completions.create(model=MODEL, messages=[user("x")], stream=True)
        assert limited.value.response.headers["retry-after"] == "61"
        bad = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0)
        async with bad:
            with pytest.raises(openai.AuthenticationError):
                await bad.chat.completions.create(model=MODEL, messages=[user("x")])
        async with client_of(server, scopes=["read"]) as reader:
            with pytest.raises(openai.PermissionDeniedError):
                await reader.chat.completions.create(model=MODEL, messages=[user("x")])


async def test_a_model_that_breaks_off_ends_the_stream_with_an_error(open_server: Callable[..., Any]) -> None:
    script = [Reply(text="One two three four five six.", cut_at_byte=900), Reply(text="One two three four five six.", cut_at_byte=900)]
    async with open_server(script) as server, client_of(server) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=[user("x")], stream=True)
        heard = ""
        with pytest.raises(openai.APIError):
            async for chunk in stream:
                heard += chunk.choices[0].delta.content or ""
        assert heard.startswith("One")
        events = [event async for event in await client.responses.create(model=MODEL, input="x", stream=True)]
        assert events[-1].type == "response.failed" and events[-1].response.error is not None


async def test_disconnecting_stops_a_plain_model_but_not_an_agent(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="One two three four.", hang_at=3, times=0)]) as server, client_of(server) as client:
        started: list[str] = []
        for model in ("agent:default", MODEL):
            stream = await client.chat.completions.create(model=model, messages=[user("x")], stream=True)
            async for _ in stream:
                break
            await called(server, len(started) + 1)
            await stream.close()
            (run,) = {run.id for run in await server.engine.store.records.runs()} - {*started}
            started.append(run)
        agent, plain = started
        assert (await server.engine.runs.wait(plain)).status == "cancelled"
        server.model.release()
        assert (await server.engine.runs.wait(agent)).status == "finished"
