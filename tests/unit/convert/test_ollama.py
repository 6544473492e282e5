from __future__ import annotations

import json
from typing import Any

import pytest

from moot.convert.dialects.ollama import OllamaChat
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId, ModelSettings
from moot.types.provider import ModelPrompt, ToolDefinition

DIALECT = OllamaChat()
MODEL = Model(ModelId("qwen3:4b", "ollama"), "qwen3:4b", context=32_768, modalities=("text", "image"), reasoning=True)
PIXEL = "iVBORw0KGgo="
GO = Message("u", "user", (text_part("go"),))


def line(**message: Any) -> bytes:
    row = {"model": "qwen3:4b", "created_at": "x", "message": {"role": "assistant", "content": "", **message}, "done": False}
    return json.dumps(row).encode() + b"\n"


def end(reason: str = "stop", **totals: int) -> bytes:
    row = {"model": "qwen3:4b", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason, **totals}
    return json.dumps(row).encode() + b"\n"


def translate(*raws: bytes, ended: Ended = "eof", used: tuple[str, ...] = ()) -> tuple[list[Chunk], Ending]:
    translator = DIALECT.translator
    state, chunks = translator.open(ExchangeOptions("1.0", 1, used, {"provider": "ollama"})), list[Chunk]()
    for raw in raws:
        state, made = translator.feed(state, raw)
        chunks += made
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending


def request(*messages: Message, model: Model = MODEL, system: str = "", tools: tuple[ToolDefinition, ...] = (), **settings: Any) -> Any:
    body = DIALECT.to_request(ModelPrompt(model, system, messages, tools, ModelSettings(**settings)))
    return json.loads(json.dumps(body))


def done(parts: tuple[Part, ...], output: Any = "42") -> Message:
    settled = (
        {**part, "state": "output-available", "output": output} if part.get("state") == "input-available" else part for part in parts
    )
    return Message("a", "assistant", tuple(settled))


def test_thinking_text_and_totals() -> None:
    chunks, ending = translate(
        line(thinking="hm"), line(content="Hel"), line(content="lo"), end(prompt_eval_count=9, eval_count=3, total_duration=5_000)
    )
    assert [(chunk["type"], chunk.get("delta")) for chunk in chunks if "delta" in chunk] == [
        ("reasoning-delta", "hm"),
        ("text-delta", "Hel"),
        ("text-delta", "lo"),
    ]
    assert (ending.finish_reason, ending.raw_reason, ending.error) == ("stop", "stop", None)
    assert ending.usage.to_json() == {"input": 9, "output": 3}
    assert ending.metadata == {"model": "qwen3:4b", "ollama": {"total_duration": 5_000}}


def test_a_complete_call_gets_an_id_and_keeps_every_digit() -> None:
    call = {"function": {"name": "add", "arguments": {"n": 2**70}}}
    chunks, ending = translate(line(tool_calls=[call, call]), end(), used=("call_1.0_0",))
    available = [chunk for chunk in chunks if chunk["type"] == "tool-input-available"]
    assert [chunk["input"] for chunk in available] == [{"n": 2**70}] * 2
    assert len({chunk["toolCallId"] for chunk in chunks}) == 2 and "call_1.0_0" not in {chunk["toolCallId"] for chunk in chunks}
    assert [chunk["type"] for chunk in chunks] == ["tool-input-start", "tool-input-available"] * 2
    assert ending.finish_reason == "tool-calls"


def test_outputs_are_returned_by_name_in_call_order() -> None:
    calls = [{"function": {"name": name, "arguments": {}}} for name in ("b", "a")]
    parts = fold_parts((), translate(line(thinking="hm"), line(tool_calls=calls), end())[0])
    sent = request(GO, done(parts))["messages"]
    assert sent[1] == {
        "role": "assistant",
        "content": "",
        "thinking": "hm",
        "tool_calls": [{"function": {"name": "b", "arguments": {}}}, {"function": {"name": "a", "arguments": {}}}],
    }
    assert sent[2:] == [{"role": "tool", "content": "42", "tool_name": "b"}, {"role": "tool", "content": "42", "tool_name": "a"}]


def test_a_vendor_id_is_returned_with_call_and_output() -> None:
    call = {"id": "call_x", "function": {"name": "a", "arguments": {}}}
    sent = request(GO, done(fold_parts((), translate(line(tool_calls=[call]), end(), used=("call_x",))[0])))["messages"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_x"


def test_thinking_of_another_provider_is_not_sent() -> None:
    parts = fold_parts((), translate(line(thinking="hm"), line(content="so"), end())[0])
    other = Model(ModelId("m", "elsewhere"), "m", reasoning=True)
    assert request(GO, done(parts), model=other)["messages"][1] == {"role": "assistant", "content": "so"}


@pytest.mark.parametrize(
    ("name", "effort", "think"),
    [("qwen3:4b", "none", False), ("qwen3:4b", "low", True), ("gpt-oss:20b", "none", "low"), ("gpt-oss:20b", "max", "high")],
)
def test_effort_is_a_yes_or_a_level(name: str, effort: Any, think: object) -> None:
    model = Model(ModelId(name, "ollama"), name, reasoning=True)
    assert request(GO, model=model, effort=effort)["think"] == think
    assert "think" not in request(GO, model=model) and "think" not in request(GO, model=Model(model.id, name), effort="low")


def test_settings_schema_and_context_reach_the_body() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = ToolDefinition("read_file", "Reads.", {"type": "object", "properties": {}})
    body = request(GO, system="be brief", tools=(tool,), temperature=0.3, max_tokens=7, stop=("x",), schema=schema)
    assert body["options"] == {"num_ctx": 32_768, "num_predict": 7, "temperature": 0.3, "stop": ["x"]}
    assert body["format"] == schema and body["stream"] is True
    assert body["messages"][0] == {"role": "system", "content": "be brief"}
    assert body["tools"][0]["function"]["name"] == "read_file"
    assert "tools" not in request(GO, tools=(tool,), tool_choice="none")


def test_images_are_bare_base64_and_other_files_are_text() -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PIXEL}"}
    linked: Part = {"type": "file", "mediaType": "image/png", "url": "https://host/a.png"}
    sent = request(Message("u", "user", (text_part("look"), picture, linked)))["messages"][0]
    assert sent["images"] == [PIXEL] and "https://host/a.png" in sent["content"]
    output = {"type": "content", "value": [text_part("seen"), picture]}
    parts = fold_parts((), translate(line(tool_calls=[{"function": {"name": "look", "arguments": {}}}]), end())[0])
    tool, shown = request(GO, done(parts, output))["messages"][2:]
    assert tool["content"] == "seen" and shown["role"] == "user" and shown["images"] == [PIXEL]


def test_images_become_files() -> None:
    chunks, _ = translate(line(content="Here:", images=[PIXEL, "/9j/AAAA"]), end())
    assert [chunk["mediaType"] for chunk in chunks if chunk["type"] == "file"] == ["image/png", "image/jpeg"]


@pytest.mark.parametrize(
    "raws", [[line(content="a"), b'{"error":"model requires more memory"}\n'], [b'{"error":"model requires more memory"}\n']]
)
def test_an_error_line_ends_the_stream_with_its_message(raws: list[bytes]) -> None:
    _, ending = translate(*raws)
    assert ending.finish_reason == "error" and ending.error is not None and ending.error.message == "model requires more memory"


def test_an_answer_without_its_last_line_is_cut() -> None:
    _, ending = translate(line(content="a"), line(content="b")[:30])
    assert ending.error is not None and ending.error.kind == "transport" and ending.error.retryable


def test_html_in_place_of_lines_is_reported() -> None:
    _, ending = translate(b"<html>\n", b"<h1>Bad gateway</h1>\n")
    assert ending.error is not None and "HTML" in ending.error.message


def test_a_line_that_is_not_json_spoils_later_lines() -> None:
    translator = DIALECT.translator
    state, _ = translator.feed(translator.open(ExchangeOptions()), line(content="a"))
    state, _ = translator.feed(state, b'{"message": {\n')
    assert translator.spoiled(state)
