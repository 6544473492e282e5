"""Requests of other programs, in each dialect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.convert.callers.chat import read_chat
from moot.convert.callers.messages import read_messages
from moot.convert.callers.request import OUTPUT, CallerRequest
from moot.convert.callers.responses import read_responses
from moot.errors import UsageError
from moot.types.message import Message

PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
READERS = {"chat": read_chat, "responses": read_responses, "messages": read_messages}


def chat(*messages: dict[str, Any], **more: Any) -> CallerRequest:
    return read_chat({"model": "m", "messages": list(messages), **more})


def responses(*items: dict[str, Any], **more: Any) -> CallerRequest:
    return read_responses({"model": "m", "input": list(items), **more})


def anthropic(*messages: dict[str, Any], **more: Any) -> CallerRequest:
    return read_messages({"model": "m", "max_tokens": 100, "messages": list(messages), **more})


def shape(messages: tuple[Message, ...]) -> list[tuple[str, tuple[dict[str, Any], ...]]]:
    return [(message.role, message.parts) for message in messages]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "state": "done"}


CALLED = {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {"city": "Bonn"}, "output": "rain"}
TALK = [("user", (text("How is it?"),)), ("assistant", (text("Let me see."), CALLED)), ("user", (text("And now?"),))]


def test_the_same_conversation_is_equal_in_every_dialect() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
    in_chat = chat(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How is it?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
    )
    in_responses = responses(
        {"role": "user", "content": "How is it?"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bonn"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
        instructions="Be brief.",
    )
    blocks = [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bonn"}}]
    outputs = [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}, {"type": "text", "text": "And now?"}]
    in_messages = anthropic(
        {"role": "user", "content": "How is it?"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": outputs},
        system="Be brief.",
    )
    for asked in (in_chat, in_responses, in_messages):
        assert asked.system == "Be brief."
        assert shape(asked.messages) == TALK


def test_images_are_accepted_in_every_dialect() -> None:
    asked = [
        chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}),
        responses({"role": "user", "content": [{"type": "input_image", "image_url": PNG}]}),
        anthropic(
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}],
            }
        ),
    ]
    for one in asked:
        assert one.messages[0].parts == ({"type": "file", "mediaType": "image/png", "url": PNG},)


def test_settings_are_read_from_chat_completions() -> None:
    asked = chat(
        {"role": "user", "content": "x"},
        temperature=0.5,
        max_completion_tokens=7,
        top_p=0.9,
        stop="END",
        reasoning_effort="minimal",
        response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        tools=[{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        parallel_tool_calls=False,
        stream=True,
        stream_options={"include_usage": True},
        seed=3,
    )
    settings = asked.settings
    assert (settings.temperature, settings.max_tokens, settings.top_p, settings.stop, settings.effort) == (0.5, 7, 0.9, ("END",), "low")
    assert (settings.schema, settings.tool_choice, settings.parallel_calls) == (SCHEMA, "=weather", False)
    assert asked.tools[0].name == "weather" and asked.tools[0].schema == SCHEMA
    assert asked.stream and asked.stream_usage


def test_settings_are_read_from_responses() -> None:
    asked = responses(
        {"role": "user", "content": "x"},
        max_output_tokens=7,
        reasoning={"effort": "high"},
        text={"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        tools=[{"type": "function", "name": "weather", "parameters": SCHEMA}],
        tool_choice="required",
    )
    assert (asked.settings.max_tokens, asked.settings.effort, asked.settings.schema) == (7, "high", SCHEMA)
    assert asked.settings.tool_choice == "required" and asked.tools[0].name == "weather"


def test_settings_are_read_from_messages() -> None:
    asked = anthropic(
        {"role": "user", "content": "x"},
        stop_sequences=["END"],
        thinking={"type": "enabled", "budget_tokens": 8000},
        tools=[{"name": "weather", "input_schema": SCHEMA}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
    )
    settings = asked.settings
    assert (settings.max_tokens, settings.stop, settings.effort, settings.show_reasoning) == (100, ("END",), "medium", True)
    assert (settings.tool_choice, settings.parallel_calls, settings.schema) == ("required", False, SCHEMA)
    assert not anthropic({"role": "user", "content": "x"}).settings.show_reasoning


def test_signed_thinking_keeps_its_signature() -> None:
    asked = anthropic(
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s1"},
                {"type": "redacted_thinking", "data": "d1"},
                {"type": "text", "text": "y"},
            ],
        },
    )
    thought, hidden, _ = asked.messages[1].parts
    assert thought["text"] == "hm" and thought["providerMetadata"] == {"anthropic": {"signature": "s1"}}
    assert hidden["providerMetadata"] == {"anthropic": {"redactedData": "d1"}}


def test_outputs_without_their_answer_are_kept_by_call_id() -> None:
    asked = responses({"type": "function_call_output", "call_id": "c1", "output": "rain"}, previous_response_id="resp_1")
    assert asked.after == "resp_1"
    assert shape(asked.messages) == [("user", ({"type": OUTPUT, "data": {"toolCallId": "c1", "output": "rain"}},))]


def test_a_failed_call_reads_as_failed() -> None:
    asked = anthropic(
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no net", "is_error": True}]},
    )
    assert asked.messages[1].parts[0]["errorText"] == "no net" and asked.messages[1].parts[0]["state"] == "output-error"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("chat", {"messages": [{"role": "user", "content": "x"}]}, "model: This field is missing."),
    ("chat", {"model": "m"}, "messages: Expected at least one message."),
    ("chat", {"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 2}, "n: Only 1"),
    ("chat", {"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": 3}, "temperature: 3 is not between 0 and 2."),
    ("chat", {"model": "m", "messages": [{"role": "clown", "content": "x"}]}, "messages[0].role: 'clown'"),
    ("chat", {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c9", "content": "x"}]}, "No call with the id 'c9'"),
    ("chat", {"model": "m", "messages": [{"role": "user", "content": "x"}], "logprobs": True}, "logprobs"),
    ("responses", {"model": "m", "input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type: Tool type 'web_search'"),
    ("responses", {"model": "m", "input": "x", "background": True}, "background"),
    ("responses", {"model": "m", "input": [{"type": "item_reference", "id": "i"}]}, "input[0].type"),
    ("messages", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, "max_tokens: This field is missing."),
    ("messages", {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "video"}]}]}, "'video'"),
    ("messages", {"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "x"}]}, "max_tokens"),
]


@pytest.mark.parametrize(("dialect", "body", "words"), REFUSED)
def test_unsupported_requests_are_rejected_with_the_field(dialect: str, body: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        READERS[dialect](body)
    assert words in caught.value.message


@pytest.mark.parametrize("url", ["blob:abc", "file:///etc/passwd", "data:text/html,<p>", "javascript:x", "moot:1"])
def test_only_data_and_web_urls_are_accepted_as_files(url: str) -> None:
    with pytest.raises(UsageError):
        chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
    with pytest.raises(UsageError):
        responses({"role": "user", "content": [{"type": "input_image", "image_url": url}]})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.sampled_from(["user", "assistant", "tool", "text", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "tool_calls", "id", "function", "name", "arguments", "call_id", "source", "tool_use_id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("dialect", READERS)
@given(
    st.dictionaries(
        st.sampled_from(["model", "messages", "input", "tools", "stream", "system", "max_tokens", "tool_choice", "thinking", "text"]),
        json_values,
    )
)
def test_any_body_is_read_or_refused(dialect: str, body: dict[str, Any]) -> None:
    try:
        READERS[dialect](body)
    except UsageError as error:
        assert error.message
