"""generate_image and transcribe_audio over real HTTP: when they are offered, what they send, and what is stored."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Models
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.message import Part, is_tool, text_of

pytestmark = pytest.mark.anyio

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\x00" * 24
BOTH = Models(main="scripted@mine", image="scripted@mine", transcription="scripted@mine")
ENDPOINTS = ("pictures", "sounds")


def calling(call: ToolCall, media: Reply | None = None) -> Any:
    """A model that makes one call and then repeats its output; `media` has the responses of its other endpoints."""

    def script(recorded: Recorded) -> Reply:
        if recorded.dialect in ENDPOINTS:
            return media or Reply(status=500)
        done = any(message["role"] == "tool" for message in recorded.messages)
        return Reply(text="Done.") if done else Reply(tool_calls=[call])

    return script


def outputs(message: Any) -> list[Part]:
    return [part for part in message.parts if is_tool(part)]


def offered(recorded: Recorded) -> set[str]:
    return {tool["function"]["name"] for tool in recorded.json.get("tools", [])}


async def test_media_tools_are_offered_only_with_configured_models(stage: Any) -> None:
    for models, there in [(Models(main="scripted@mine"), set[str]()), (BOTH, {"generate_image", "transcribe_audio"})]:
        async with stage([Reply(text="Hi.")], models=models) as on:
            await on.ask("Hi")
            assert offered(on.server.requests[0]) & {"generate_image", "transcribe_audio"} == there


async def test_an_image_is_generated_stored_shown_and_saved(stage: Any, directory: Path) -> None:
    call = ToolCall("generate_image", {"prompt": "a red dot", "path": "out/dot.png", "size": "1024x1024"})
    async with stage(calling(call, Reply(picture=PNG, text="A small red dot.")), models=BOTH) as on:
        run, message = await on.ask("Draw")
        (asked,) = [one for one in on.server.requests if one.dialect == "pictures"]
        (part,) = outputs(message)
        output = part["output"]
        assert run.status == "finished" and text_of(message.parts) == "Done."
        assert asked.path == "/v1/images/generations" and asked.json["prompt"] == "a red dot" and asked.json["size"] == "1024x1024"
        assert (directory / "out" / "dot.png").read_bytes() == PNG
        file = output["value"][1]
        assert (file["mediaType"], file["filename"]) == ("image/png", "out/dot.png")
        assert await on.engine.store.of(message and run.user).blobs.get(file["url"].removeprefix("blob:")) == PNG
        assert "scripted@mine generated an image" in output["value"][0]["text"] and "out/dot.png" in output["value"][0]["text"]


async def recorded(on: Any, conversation: str, purpose: str) -> tuple[Any, bytes, bytes, Any]:
    """The only exchange with that purpose: its row, its request, its response, and its end event."""
    store = on.engine.store
    events = await store.log.read(conversation)
    (id,) = {event.exchange for event in events if event.exchange and f":{purpose}:" in event.exchange}
    exchange = await store.records.exchange(id)
    sent = b"".join([await store.blobs.get(piece) for piece in exchange.request["pieces"]])
    mine = [event for event in events if event.exchange == id]
    return exchange, sent, b"".join(event.raw or b"" for event in mine), mine[-1].body


@pytest.mark.parametrize("sources", [[], ["old.png"]])
async def test_image_requests_and_responses_are_logged_byte_for_byte(stage: Any, directory: Path, sources: list[str]) -> None:
    (directory / "old.png").write_bytes(PNG)
    call = ToolCall("generate_image", {"prompt": "a red dot", "sources": sources})
    async with stage(calling(call, Reply(picture=PNG, usage={"input": 7, "output": 9})), models=BOTH) as on:
        run, _ = await on.ask("Draw")
        (asked,) = [one for one in on.server.requests if one.dialect == "pictures"]
        exchange, sent, came, end = await recorded(on, run.conversation, "picture")
    assert sent == asked.body and b"a red dot" in sent
    assert base64.b64encode(PNG) in came and exchange.ended == "eof" and exchange.run == ""
    assert (end["usage"]["input"], end["usage"]["output"]) == (7, 9) and "charged" in end


async def test_a_refused_picture_is_in_the_log_too(stage: Any, directory: Path) -> None:
    call = ToolCall("generate_image", {"prompt": "a red dot"})
    async with stage(calling(call, Reply(status=400, error="not that one")), models=BOTH) as on:
        run, message = await on.ask("Draw")
        exchange, _, came, end = await recorded(on, run.conversation, "picture")
    assert exchange.ended == "cut" and b"not that one" in came and end["charged"] == 0
    assert "not that one" in json.dumps(outputs(message))


async def test_an_image_can_be_generated_from_another_one(stage: Any, directory: Path) -> None:
    (directory / "old.png").write_bytes(PNG)
    call = ToolCall("generate_image", {"prompt": "make it blue", "sources": ["old.png"]})
    async with stage(calling(call, Reply(picture=PNG)), models=BOTH) as on:
        await on.ask("Draw")
        (asked,) = [one for one in on.server.requests if one.dialect == "pictures"]
    assert asked.path == "/v1/images/edits" and asked.headers["content-type"].startswith("multipart/form-data")
    assert PNG in asked.body and b'name="image[]"; filename="old.png"' in asked.body and b"make it blue" in asked.body


@pytest.mark.parametrize("dialect", ["google", "ollama"])
async def test_an_image_model_answers_in_its_own_dialect(stage: Any, directory: Path, dialect: str) -> None:
    (directory / "old.png").write_bytes(PNG)
    call = ToolCall("generate_image", {"prompt": "a red dot", "sources": ["old.png"]})
    async with ScriptedServer([Reply(picture=PNG, text="Here.")], models=("x-image",)) as painter:
        entry = painter.provider("painter", dialect, models={"x-image": {"modalities": ["text", "image"]}})
        models = Models(main="scripted@mine", image="x-image@painter")
        async with stage(calling(call), models=models, others={"painter": entry}) as on:
            _, message = await on.ask("Draw")
    (part,) = outputs(message)
    assert part["state"] == "output-available" and part["output"]["value"][1]["mediaType"] == "image/png"
    (asked,) = painter.requests
    assert asked.dialect == dialect and "a red dot" in asked.user_text and base64.b64encode(PNG) in asked.body
    assert "scripted-key" not in asked.path and "scripted-key" in json.dumps(dict(asked.headers))


async def test_a_recording_is_written_down(stage: Any, directory: Path) -> None:
    (directory / "memo.wav").write_bytes(WAV)
    call = ToolCall("transcribe_audio", {"path": "memo.wav", "language": "de"})
    async with stage(calling(call, Reply(text="Guten Tag.")), models=BOTH) as on:
        _, message = await on.ask("Listen")
        (asked,) = [one for one in on.server.requests if one.dialect == "sounds"]
    assert outputs(message)[0]["output"] == "Guten Tag."
    assert WAV in asked.body and b'filename="sound.wav"' in asked.body and b"audio/wav" in asked.body
    assert b'name="language"\r\n\r\nde' in asked.body


async def test_an_audio_model_gets_the_recording(stage: Any, directory: Path) -> None:
    (directory / "memo.wav").write_bytes(WAV)
    async with ScriptedServer([Reply(text="Guten Tag.")], models=("ears",)) as listener:
        entry = listener.provider("listener", "google", models={"ears": {"modalities": ["text", "audio"]}})
        models = Models(main="scripted@mine", transcription="ears@listener")
        async with stage(calling(ToolCall("transcribe_audio", {"path": "memo.wav"})), models=models, others={"listener": entry}) as on:
            _, message = await on.ask("Listen")
    assert outputs(message)[0]["output"] == "Guten Tag."
    assert base64.b64encode(WAV) in listener.requests[0].body


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("generate_image", {"prompt": "x", "sources": ["../secret.png"]}), "secret.png"),
        (ToolCall("generate_image", {"prompt": "x", "sources": ["notes.txt"]}), "is not an image"),
        (ToolCall("generate_image", {"prompt": "x", "path": "../out.png"}), "out.png"),
        (ToolCall("generate_image", {"prompt": "x", "sources": [f"blob:{'0' * 64}"]}), "not found. Use the name"),
        (ToolCall("transcribe_audio", {"path": "../secret.wav"}), "secret.wav"),
        (ToolCall("transcribe_audio", {"path": "notes.txt"}), "is not a recording"),
        (ToolCall("transcribe_audio", {"path": "gone.wav"}), "gone.wav"),
        (ToolCall("transcribe_audio", {"path": "large.wav"}), "is larger than 25.0 MB"),
    ],
    ids=lambda value: value.text[:60] if isinstance(value, ToolCall) else "",
)
async def test_unreadable_files_are_never_sent(stage: Any, directory: Path, call: ToolCall, words: str) -> None:
    (directory / "notes.txt").write_text("words")
    (directory.parent / "secret.png").write_bytes(PNG)
    (directory.parent / "secret.wav").write_bytes(WAV)
    with (directory / "large.wav").open("wb") as large:
        large.write(WAV)
        large.truncate(25_000_001)
    async with stage(calling(call), models=BOTH) as on:
        run, message = await on.ask("Go")
    (part,) = outputs(message)
    assert run.status == "finished" and part["state"] == "output-error" and words in str(part["errorText"])
    assert not [one for one in on.server.requests if one.dialect in ENDPOINTS]


@pytest.mark.parametrize(
    ("media", "words"),
    [
        (Reply(status=400, error="not a safe wish"), "not a safe wish"),
        (Reply(text="no picture"), "contains no image"),
        (Reply(raw=b"<html>"), "not valid JSON"),
    ],
)
async def test_a_refusal_is_an_output_that_the_model_reads(stage: Any, media: Reply, words: str) -> None:
    async with stage(calling(ToolCall("generate_image", {"prompt": "x"}), media), models=BOTH) as on:
        run, message = await on.ask("Draw")
    (part,) = outputs(message)
    assert run.status == "finished" and part["state"] == "output-error" and words in str(part["errorText"])


async def test_media_tools_need_approval_like_other_tools_with_effects(stage: Any, directory: Path) -> None:
    call = ToolCall("generate_image", {"prompt": "x", "path": "a.png"})
    async with stage(calling(call, Reply(picture=PNG)), models=BOTH, mode="ask") as on:
        run, _ = await on.ask("Draw")
        assert run.status == "waiting" and not [one for one in on.server.requests if one.dialect == "pictures"]
    assert not (directory / "a.png").exists()
