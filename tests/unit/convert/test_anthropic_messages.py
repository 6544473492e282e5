from __future__ import annotations

import json
from typing import Any

import pytest

from moot.convert.dialects.anthropic import AnthropicMessages
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId, ModelSettings
from moot.types.provider import ModelPrompt, Quirks, ToolDefinition

DIALECT = AnthropicMessages()
MODEL = Model(ModelId("sonnet", "anthropic"), "claude-sonnet-4-5", max_output=64_000, modalities=("text", "image", "pdf"), reasoning=True)
EPHEMERAL = {"type": "ephemeral"}


def request(
    *messages: Message, system: str = "", model: Model = MODEL, tools: tuple[ToolDefinition, ...] = (), **settings: Any
) -> dict[str, Any]:
    prompt = ModelPrompt(model, system, messages, tools, ModelSettings(**settings), Quirks())
    return json.loads(json.dumps(DIALECT.to_request(prompt)))


def sent(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    found = request(*messages, **options)["messages"]
    for message in found:
        for block in message["content"]:
            block.pop("cache_control", None)
    return found


def assistant(*parts: Part) -> Message:
    return Message("a", "assistant", parts)


def user(*parts: Part) -> Message:
    return Message("u", "user", parts)


GO = user(text_part("go"))


def tool(state: str, id: str = "toolu_1", **fields: Any) -> Part:
    return {"type": "tool-read", "toolCallId": id, "state": state, "input": {"a": 1}, **fields}


def test_outputs_come_first_in_the_message_after_their_calls() -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    output = {"type": "content", "value": [text_part("a cat"), picture]}
    message = assistant(text_part("look"), tool("output-available", output=output), tool("output-error", "toolu_2", errorText="no"))
    assert sent(GO, message, user(text_part("and?"))) == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"a": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "a cat"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    ],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
                {"type": "text", "text": "and?"},
            ],
        },
    ]


def test_ids_of_other_vendors_are_made_to_fit_and_unique() -> None:
    message = assistant(tool("output-available", "call_0", output="1"), tool("output-available", "call_0#2.0", output="2"))
    other = assistant(tool("output-available", "call_0", output="3"))
    messages = sent(GO, message, GO, other)
    ids = [block["id"] for found in messages for block in found["content"] if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for found in messages for block in found["content"] if block["type"] == "tool_result"]
    assert ids == results and len(set(ids)) == 3 and all(id.replace("_", "").isalnum() for id in ids)


def test_files_are_sent_in_a_form_the_model_supports() -> None:
    pdf: Part = {"type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "url": "data:application/pdf;base64,JVBERg=="}
    image: Part = {"type": "file", "mediaType": "image/png", "url": "https://x/y.png"}
    note: Part = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain,hi%20you"}
    assert sent(user(pdf, image, note))[0]["content"] == [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "title": "a.pdf"},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "text", "text": "a.txt:\nhi you"},
    ]


def test_adjacent_messages_of_one_role_are_merged_and_the_user_comes_first() -> None:
    messages = sent(
        assistant(text_part("hello ")), user(text_part("a")), user(text_part(" ")), user(text_part("b")), assistant(text_part("end \n"))
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert [block["text"] for block in messages[2]["content"]] == ["a", "b"] and messages[3]["content"][0]["text"] == "end"


def test_cache_markers_follow_the_system_prompt_and_the_last_two_user_messages() -> None:
    definition = ToolDefinition("read", "Reads.", {"type": "object"})
    body = request(GO, assistant(text_part("a")), GO, assistant(text_part("b")), GO, system="s", tools=(definition,))
    assert body["system"] == [{"type": "text", "text": "s", "cache_control": EPHEMERAL}]
    assert ["cache_control" in message["content"][-1] for message in body["messages"]] == [False, False, True, False, True]
    assert body["tools"] == [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]
    assert request(GO, tools=(definition,))["tools"][0]["cache_control"] == EPHEMERAL
    assert json.dumps(body).count("cache_control") <= 4


@pytest.mark.parametrize(
    ("effort", "limit", "budget"),
    [("low", None, 4_096), ("max", None, 30_976), ("high", 3_000, 1_976), ("high", 1_500, None), ("none", None, None)],
)
def test_a_thinking_budget_stays_below_the_output_limit(effort: Any, limit: int | None, budget: int | None) -> None:
    body = request(GO, effort=effort, max_tokens=limit, temperature=0.3)
    assert body["max_tokens"] == (limit or 32_000)
    assert body.get("thinking") == ({"type": "enabled", "budget_tokens": budget} if budget else None)
    assert ("temperature" in body) is (budget is None)


@pytest.mark.parametrize(
    ("name", "effort", "thinking", "config"),
    [
        ("claude-opus-4-6", "high", {"type": "adaptive", "display": "summarized"}, {"effort": "high"}),
        ("anthropic/claude-sonnet-4.6", "none", {"type": "disabled"}, None),
        ("claude-sonnet-5", "none", None, {"effort": "low"}),
        ("claude-opus-4-20250514", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
        ("claude-3-7-sonnet-20250219", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
        ("MiniMax-M2", "low", {"type": "enabled", "budget_tokens": 4_096}, None),
    ],
)
def test_newer_models_take_effort_as_a_word(name: str, effort: Any, thinking: Any, config: Any) -> None:
    body = request(GO, model=Model(ModelId("m", "anthropic"), name, max_output=64_000, reasoning=True), effort=effort)
    assert body.get("thinking") == thinking and body.get("output_config") == config


def test_a_turn_started_without_thinking_continues_without_it() -> None:
    foreign = assistant(tool("output-available", output="1"))
    assert "thinking" not in request(GO, foreign, effort="high")
    assert "thinking" in request(GO, foreign, assistant(text_part("done")), GO, effort="high")


def test_schema_and_sampling() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    body = request(GO, schema=schema, temperature=1.5, top_p=0.5, stop=("X",))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    assert body["temperature"] == 1.0 and "top_p" not in body and body["stop_sequences"] == ["X"]
    newer = Model(ModelId("m", "anthropic"), "claude-opus-4-7", reasoning=True)
    assert "temperature" not in request(GO, model=newer, temperature=0.3)
