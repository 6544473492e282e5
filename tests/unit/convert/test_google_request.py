from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.convert.dialects.google import subset
from moot.types.canonical import JsonObject
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId
from moot.types.provider import ToolDefinition
from unit.convert.google_wire import GO, MODEL, OLDER, answered, event, parts, request

CALL: Part = {"type": "tool-f", "toolCallId": "toolu_1", "state": "output-available", "input": {"a": 1}, "output": "42"}


def test_the_body_contains_all_settings() -> None:
    tool = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
    bare = ToolDefinition("list", "Lists.", {"type": "object", "properties": {}})
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = request(
        GO, system="be brief", tools=(tool, bare), temperature=0.3, top_p=0.5, max_tokens=9, stop=("x",), schema=schema, effort="low"
    )
    assert body == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Reads.", "parameters": tool.schema},
                    {"name": "list", "description": "Lists."},
                ]
            }
        ],
        "generationConfig": {
            "temperature": 0.3,
            "topP": 0.5,
            "maxOutputTokens": 9,
            "stopSequences": ["x"],
            "responseMimeType": "application/json",
            "responseSchema": schema,
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
        },
    }
    assert "model" not in body and "generationConfig" not in request(GO)


@pytest.mark.parametrize(
    ("choice", "config"),
    [("none", {"mode": "NONE"}), ("required", {"mode": "ANY"}), ("=read", {"mode": "ANY", "allowedFunctionNames": ["read"]})],
)
def test_the_tool_choice_is_sent(choice: str, config: JsonObject) -> None:
    tool = ToolDefinition("read", "Reads.", {"type": "object"})
    assert request(GO, tools=(tool,), tool_choice=choice)["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in request(GO, tools=(tool,))


@pytest.mark.parametrize(
    ("name", "effort", "thinking"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0, "includeThoughts": False}),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128, "includeThoughts": False}),
        ("gemini-2.5-pro", "max", {"thinkingBudget": 24_576, "includeThoughts": True}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-3.8-flash", "none", {"thinkingLevel": "minimal", "includeThoughts": False}),
        ("gemini-3.8-flash", "max", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-1.5-pro", "max", None),
    ],
)
def test_effort_is_a_level_or_a_budget(name: str, effort: Any, thinking: JsonObject | None) -> None:
    model = Model(ModelId(name, "google"), name, reasoning=True)
    assert request(GO, model=model, effort=effort).get("generationConfig", {}).get("thinkingConfig") == thinking


def test_image_models_get_requests_for_images() -> None:
    model = Model(ModelId("gemini-3.8-flash-image", "google"), "gemini-3.8-flash-image")
    assert request(GO, model=model)["generationConfig"] == {"responseModalities": ["TEXT", "IMAGE"]}


def test_calls_of_other_models_are_adapted_to_the_vendor() -> None:
    other = Message("a", "assistant", (CALL, {**CALL, "toolCallId": "toolu_2"}), {"provider": "anthropic"})
    model = request(GO, other)["contents"][1]["parts"]
    assert model == [
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "skip_thought_signature_validator"},
        {"functionCall": {"name": "f", "args": {"a": 1}}},
    ]
    assert "thoughtSignature" not in request(GO, other, model=OLDER)["contents"][1]["parts"][0]


def test_roles_alternate_and_start_with_the_user() -> None:
    steered: Part = {"type": "steering-message", "id": "s", "parts": [text_part("and b")]}
    contents = request(Message("a", "assistant", (CALL, steered, {"type": "step-start"}, text_part("So."))), GO)["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user"]
    assert [next(iter(part)) for part in contents[2]["parts"]] == ["functionResponse", "text"]


def test_failures_and_files_of_outputs_have_their_place() -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    shown: Part = {**CALL, "output": {"type": "content", "value": [text_part("seen"), picture]}}
    failed: Part = {"type": "tool-f", "toolCallId": "2", "state": "output-error", "input": {}, "errorText": "no"}
    outputs = request(GO, Message("a", "assistant", (shown, failed)))["contents"][2]["parts"]
    assert outputs == [
        {"functionResponse": {"name": "f", "response": {"output": "seen"}}},
        {"functionResponse": {"name": "f", "response": {"error": "no"}}},
        {"text": "Files that f gave:"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    ]


def test_files_are_placed_according_to_the_model() -> None:
    sound: Part = {"type": "file", "mediaType": "audio/wav", "url": "data:audio/wav;base64,AAAA"}
    film: Part = {"type": "file", "mediaType": "video/mp4", "url": "https://host/a.mp4"}
    pieces = request(Message("u", "user", (sound, film)))["contents"][0]["parts"]
    assert pieces == [
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://host/a.mp4"}},
    ]
    assert all("not shown" in piece["text"] for piece in request(Message("u", "user", (sound, film)), model=OLDER)["contents"][0]["parts"])


def test_an_image_of_another_model_is_sent_as_user_input() -> None:
    made = parts(event({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, finish="STOP"))
    other = Model(ModelId("gemini-3.8-flash", "elsewhere"), "gemini-3.8-flash", modalities=MODEL.modalities)
    assert len(request(GO, answered(made), model=other)["contents"]) == 1


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        ({"type": ["string", "null"], "format": "uri"}, {"type": "string", "nullable": True}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, 2]}, {"type": "integer"}),
        (
            {"type": ["string", "integer"], "description": "d"},
            {"description": "d", "anyOf": [{"description": "d", "type": "string"}, {"description": "d", "type": "integer"}]},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, {"type": "string", "nullable": True}),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        (
            {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "object", "additionalProperties": False, "$schema": "x", "required": ["gone"]}, {"type": "object"}),
        (
            {"$ref": "#/$defs/A", "description": "d", "$defs": {"A": {"type": "integer", "exclusiveMinimum": 0}}},
            {"description": "d", "type": "integer"},
        ),
        ({}, {}),
    ],
)
def test_schemas_are_converted_to_the_vendors_subset(schema: JsonObject, reduced: JsonObject) -> None:
    assert subset(schema) == reduced


@pytest.mark.parametrize(
    "inner",
    [{"$ref": "#"}, {"allOf": [{"$ref": "#/properties/child"}]}, {"anyOf": [{"$ref": "#"}]}, {"type": "array", "items": {"$ref": "#"}}],
)
def test_a_recursive_schema_is_limited(inner: JsonObject) -> None:
    assert subset({"type": "object", "properties": {"child": inner}})["type"] == "object"


BOUNDS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern", "format"})
WORDS = BOUNDS | {"type", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf", "default"}
NAMES = st.sampled_from(sorted(WORDS | {"$ref", "allOf", "oneOf", "const", "additionalProperties", "not", "if"}))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 1, "string", "object", "array", "null", "#", "#/properties/a", ["string", "null"], ["a"]]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | st.sampled_from(["a", "b"]), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_any_schema_is_reduced_to_the_subset(schema: JsonObject) -> None:
    def check(found: Any) -> None:
        assert isinstance(found, dict) and found.keys() <= WORDS
        assert found.get("type") is None or isinstance(found["type"], str)
        for inner in [*found.get("properties", {}).values(), *found.get("anyOf", ()), *([found["items"]] if "items" in found else [])]:
            check(inner)
        assert set(found.get("required", ())) <= found.get("properties", {}).keys()

    check(subset(schema))
