"""The vendors' own clients understand the doubles."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from openai import AsyncOpenAI

pytestmark = pytest.mark.anyio

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def client_of(server: ScriptedServer) -> AsyncOpenAI:
    from openai import AsyncOpenAI  # takes a second, and the other workers don't need it

    return AsyncOpenAI(base_url=server.openai_url, api_key="scripted-key", max_retries=0)


@pytest.mark.slow
async def test_responses_stream_to_openais_own_client() -> None:
    reply = Reply(text="Hello, wörld.", reasoning="Hm.", tool_calls=[ToolCall("read_file", {"path": "a"})], picture=PNG)
    async with (
        ScriptedServer([reply, reply]) as server,
        client_of(server) as client,
        client.responses.stream(model="scripted", input="hi") as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == "Hello, wörld."
    assert [item.type for item in final.output] == ["reasoning", "message", "image_generation_call", "function_call"]
    assert json.loads(final.output[-1].arguments) == {"path": "a"}  # type: ignore[union-attr]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert final.usage is not None and final.usage.input_tokens == 12


async def test_images_and_transcripts_work_with_openais_client() -> None:
    async with ScriptedServer([Reply(picture=PNG), Reply(text="Guten Tag.")]) as server, client_of(server) as client:
        made = await client.images.generate(model="scripted", prompt="a red dot")
        heard = await client.audio.transcriptions.create(model="scripted", file=("memo.wav", b"RIFF"))
    assert made.data is not None and base64.b64decode(made.data[0].b64_json or "") == PNG
    assert heard.text == "Guten Tag."
