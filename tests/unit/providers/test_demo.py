from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.config.settings import ProviderSettings
from moot.errors import UsageError
from moot.plugins import DIALECTS
from moot.providers.endpoints.demo import Demo
from moot.types.chunk import Chunk
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.provider import ModelRequest

pytestmark = pytest.mark.anyio

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}
    for name in ("read_file", "list_files")
]


async def said(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> tuple[list[Chunk], Ending]:
    body = json.dumps({"messages": messages, "tools": TOOLS if tools is None else tools}).encode()
    translator = DIALECTS.load("openai-chat")().translator
    state, chunks = translator.open(ExchangeOptions()), []
    async for raws in Demo(ProviderSettings("demo")).stream(ModelRequest(body, "demo")):
        for raw in raws:
            state, more = translator.feed(state, raw)
            chunks.extend(more)
    more, ending = translator.close(state, "eof")
    return [*chunks, *more], ending


def text(chunks: list[Chunk]) -> str:
    return "".join(str(chunk["delta"]) for chunk in chunks if chunk["type"] == "text-delta")


async def test_the_demo_answer_is_constant_and_says_that_it_is_not_a_model() -> None:
    chunks, ending = await said([{"role": "user", "content": "Who are you?"}])
    assert "not a model" in text(chunks)
    assert "Who are you?" in text(chunks)
    assert (ending.finish_reason, ending.error) == ("stop", None)
    assert (chunks, ending) == await said([{"role": "user", "content": "Who are you?"}])


@pytest.mark.parametrize(
    ("prompt", "tool", "path"),
    [
        ("What does src/app.py say?", "read_file", "src/app.py"),
        ("Read `notes` please", "read_file", "notes"),
        ("Summarise README.md.", "read_file", "README.md"),
        ("Which files are here?", "list_files", "."),
    ],
)
async def test_file_or_folder_in_a_prompt_is_a_tool_call(prompt: str, tool: str, path: str) -> None:
    chunks, ending = await said([{"role": "user", "content": prompt}])
    calls = [chunk for chunk in chunks if chunk["type"] == "tool-input-available"]
    assert [(call["toolName"], call["input"]) for call in calls] == [(tool, {"path": path})]
    assert ending.finish_reason == "tool-calls"


async def test_tool_output_is_repeated_and_ends_the_loop() -> None:
    history = [
        {"role": "user", "content": "Read a.txt"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "first line\nsecond line"},
    ]
    chunks, ending = await said(history)
    assert "2 lines" in text(chunks)
    assert "first line" in text(chunks)
    assert ending.finish_reason == "stop"


async def test_without_tools_there_is_no_call() -> None:
    chunks, _ = await said([{"role": "user", "content": "Read a.txt"}], [])
    assert text(chunks)


@given(
    st.binary(max_size=40)
    | st.recursive(
        st.none() | st.text(max_size=5),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["messages", "tools", "role", "content", "function", "name"]), x),
        max_leaves=6,
    ).map(lambda v: json.dumps(v).encode())
)
async def test_any_request_gets_an_answer(body: bytes) -> None:
    raws = [raw async for raws in Demo(ProviderSettings("demo")).stream(ModelRequest(body, "demo")) for raw in raws]
    assert raws[-1] == b"data: [DONE]\n\n"


async def test_the_demo_model_is_labelled() -> None:
    (model,) = await Demo(ProviderSettings("demo")).models()
    assert "not a model" in model.note
    with pytest.raises(UsageError):
        Demo(ProviderSettings("demo")).describe("gpt")
