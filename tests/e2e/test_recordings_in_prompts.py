"""Recordings in prompts: sent as sound if the model accepts it, else as a transcript that is made once."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Models
from moot.errors import UsageError
from moot.features.prompts.attachments import attach
from moot.testing._server import Recorded
from moot.testing.script import Reply
from moot.types.message import Part, text_part, transcript_of
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\x00" * 24
OGG = b"OggS" + b"\x00" * 40
HEARS = {"scripted": {"modalities": ["text", "audio"]}}
DEAF = {"scripted": {"modalities": ["text"]}}
WRITES = Models(main="scripted@mine", transcription="scripted@mine")


def sound(data: bytes = WAV, media_type: str = "audio/wav", name: str = "voice.wav") -> Part:
    return {"type": "file", "mediaType": media_type, "filename": name, "url": f"data:{media_type};base64,{base64.b64encode(data).decode()}"}


def script(recorded: Recorded) -> Reply:
    return Reply(text="buy bread" if recorded.dialect == "sounds" else "Done.")


def heard(on: Any) -> list[Recorded]:
    return [request for request in on.server.requests if request.dialect == "sounds"]


async def ask(on: Any, *parts: Part, **more: Any) -> Any:
    return await on.follow(await on.engine.runs.submit(Prompt(parts, directory=str(on.directory), **more)))


@pytest.mark.parametrize(
    ("dialect", "sent"),
    [
        ("openai-chat", {"type": "input_audio", "input_audio": {"data": base64.b64encode(WAV).decode(), "format": "wav"}}),
        ("google", {"inlineData": {"mimeType": "audio/wav", "data": base64.b64encode(WAV).decode()}}),
    ],
)
async def test_a_model_that_accepts_sound_gets_it(stage: Any, dialect: str, sent: Any) -> None:
    async with stage(script, dialect=dialect, priced=HEARS) as on:
        run = await ask(on, text_part("Listen."), sound())
        assert run.status == "finished", run.error
        body = on.server.requests[0].json
    content = body["contents"][0]["parts"] if dialect == "google" else body["messages"][-1]["content"]
    assert content[1] == sent


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
async def test_other_models_get_a_transcript_that_is_made_once(stage: Any, dialect: str) -> None:
    async with stage(script, priced=HEARS, models=Models(main="scripted@other", transcription="scripted@mine"), others={}) as on:
        other = on.server.provider("other", dialect, models=DEAF)
        on.engine.runtime.settings.providers["other"] = other  # type: ignore[index]
        run = await ask(on, text_part("Listen."), sound())
        assert run.status == "finished", run.error
        answer = await on.engine.store.conversations.message(run.message)
        (stored,) = [found for part in answer.parts if (found := transcript_of(part)) is not None]
        assert (stored.name, stored.text) == ("voice.wav", "buy bread")
        prompt = (await on.engine.store.conversations.branch(run.conversation))[0]
        assert prompt.parts[1]["url"] == sound()["url"]  # the recording is kept
        (request,) = heard(on)
        assert WAV in request.body and b'filename="sound.wav"' in request.body
        await ask(on, text_part("And now?"), conversation=run.conversation)
        await ask(on, conversation=run.conversation, answers=prompt.id)
        assert len(heard(on)) == 1
        asked = [request for request in on.server.requests if request.dialect != "sounds"]
        assert len(asked) == 3 and all("buy bread" in str(request.json) for request in asked)
        assert not any("data-transcript" in str(request.json) for request in asked)


async def test_a_format_that_the_api_does_not_take_is_transcribed(stage: Any) -> None:
    async with stage(script, priced=HEARS, models=WRITES) as on:
        run = await ask(on, text_part("Listen."), sound(OGG, "audio/ogg", "voice.ogg"))
        assert run.status == "finished", run.error
        assert len(heard(on)) == 1 and b'filename="sound.ogg"' in heard(on)[0].body


async def test_without_a_way_to_send_a_recording_the_error_names_the_setting(stage: Any) -> None:
    async with stage(script, priced=DEAF) as on:
        run = await ask(on, text_part("Listen."), sound())
        assert run.status == "failed" and "models.transcription" in run.error.message and "voice.wav" in run.error.message
        assert not on.server.requests
        later = await ask(on, text_part("Never mind."), conversation=run.conversation)
        assert later.status == "finished" and "voice.wav: not shown" in str(on.server.requests[0].json)


async def test_a_failed_transcription_fails_the_run(stage: Any) -> None:
    def refusing(recorded: Recorded) -> Reply:
        return Reply(status=400, error="no such voice") if recorded.dialect == "sounds" else Reply(text="Done.")

    async with stage(refusing, priced=DEAF, models=WRITES) as on:
        run = await ask(on, text_part("Listen."), sound())
        assert run.status == "failed" and "no such voice" in run.error.message


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.wav", WAV, "audio/wav"),
        ("a.mp3", b"ID3\x04" + b"\x00" * 20, "audio/mpeg"),
        ("a.ogg", OGG, "audio/ogg"),
        ("a.flac", b"fLaC" + b"\x00" * 20, "audio/flac"),
        ("a.m4a", b"\x00\x00\x00\x20ftypisom" + b"\x00" * 20, "audio/mp4"),
        ("voice", b"\x00\x00\x00\x20ftypM4A " + b"\x00" * 20, "audio/mp4"),
        ("a.webm", b"\x1aE\xdf\xa3" + b"\x00" * 20, "audio/webm"),
    ],
)
def test_recordings_are_attached_by_their_content(tmp_path: Path, name: str, data: bytes, media_type: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert attach(tmp_path / name).part["mediaType"] == media_type


def test_a_video_is_not_attached_as_a_recording(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"\x00\x00\x00\x20ftypisom" + b"\x00" * 20)
    with pytest.raises(UsageError, match="a recording"):
        attach(tmp_path / "a.mp4")
