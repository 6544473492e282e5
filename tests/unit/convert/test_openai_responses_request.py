from __future__ import annotations

from typing import Any

import pytest

from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId
from moot.types.provider import ToolDefinition
from unit.convert.responses_wire import GO, done, end, function, request, sent_back

PLAIN = Model(ModelId("gpt-4.1", "openai"), "gpt-4.1")


def test_the_body_contains_all_settings() -> None:
    tool = ToolDefinition("read", "Reads.", {"type": "object", "properties": {}})
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    body = request(
        GO,
        system="be brief",
        tools=(tool,),
        effort="low",
        max_tokens=9,
        temperature=0.3,
        schema=schema,
        tool_choice="=read",
        parallel_calls=False,
    )
    assert body == {
        "model": "gpt-5.5",
        "instructions": "be brief",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}],
        "stream": True,
        "store": False,
        "tools": [{"type": "function", "name": "read", "description": "Reads.", "parameters": tool.schema, "strict": False}],
        "tool_choice": {"type": "function", "name": "read"},
        "parallel_tool_calls": False,
        "max_output_tokens": 9,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}},
    }
    plain = request(GO, model=PLAIN, effort="low", temperature=0.3)
    assert plain["temperature"] == 0.3 and not {"include", "reasoning"} & plain.keys()


@pytest.mark.parametrize(
    ("name", "effort", "word"),
    [
        ("gpt-5.5", "none", "none"),
        ("gpt-5.5", "max", "xhigh"),
        ("gpt-5", "none", "minimal"),
        ("gpt-5.1", "max", "high"),
        ("o3", "none", "low"),
        ("o3", "max", "high"),
    ],
)
def test_effort_uses_the_models_values(name: str, effort: Any, word: str) -> None:
    model = Model(ModelId(name, "openai"), name, reasoning=True)
    assert request(GO, model=model, effort=effort)["reasoning"]["effort"] == word


def test_files_are_sent_as_input_items() -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "detail": "low"}
    pdf: Part = {"type": "file", "mediaType": "application/pdf", "url": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}
    linked: Part = {"type": "file", "mediaType": "application/pdf", "url": "https://host/a.pdf"}
    sound: Part = {"type": "file", "mediaType": "audio/wav", "url": "data:audio/wav;base64,AAAA"}
    content = request(Message("u", "user", (picture, pdf, linked, sound)))["input"][0]["content"]
    assert content[:3] == [
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "input_file", "file_url": "https://host/a.pdf"},
    ]
    assert "not shown" in content[3]["text"]
    output = {"type": "content", "value": [text_part("seen"), picture]}
    assert sent_back(done(0, **function("look", "{}")), end(), output=output)[1]["output"] == [
        {"type": "input_text", "text": "seen"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
    ]
