"""Dictation: `POST /api/transcriptions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from e2e.server.http_calls import got
from moot.config.settings import Models
from moot.testing.script import Reply

pytestmark = pytest.mark.anyio

WEBM = b"\x1aE\xdf\xa3\x42\x82webm" + b"\x00" * 40
WRITES = Models(main="scripted@mine", transcription="scripted@mine")


async def test_a_recording_is_transcribed_and_nothing_is_stored(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="buy bread", usage={"input": 3, "output": 2})], models=WRITES) as server:
        assert (await got(server.client, "/api/session"))["transcribes"] is True
        async with server.client.post("/api/transcriptions?language=de", data=WEBM, headers={"content-type": "audio/webm"}) as answer:
            assert answer.status == 200, await answer.text()
            assert await answer.json() == {"text": "buy bread", "model": "scripted@mine", "cost": None}
        (request,) = server.model.requests
        assert request.path == "/v1/audio/transcriptions" and WEBM in request.body
        assert b'filename="sound.webm"' in request.body and b"de" in request.body
        assert (await got(server.client, "/api/conversations"))["data"] == []


async def test_bad_requests_are_refused_before_the_model_is_called(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="never")], models=WRITES) as server:
        for data, query in ((b"words", ""), (b"", ""), (WEBM, "?language=German")):
            async with server.client.post(f"/api/transcriptions{query}", data=data, headers={"content-type": "audio/webm"}) as answer:
                assert answer.status in (400, 422), await answer.text()
        async with server.caller(scopes=("read",)) as reader, reader.post("/api/transcriptions", data=WEBM) as answer:
            assert answer.status == 403
        assert not server.model.requests


async def test_without_a_model_the_error_names_the_setting(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="never")]) as server:
        assert (await got(server.client, "/api/session"))["transcribes"] is False
        async with server.client.post("/api/transcriptions", data=WEBM) as answer:
            assert answer.status == 400 and "models.transcription" in await answer.text()


async def test_a_refusal_of_the_provider_is_reported(open_server: Callable[..., Any]) -> None:
    async with (
        open_server([Reply(status=400, error="too quiet")], models=WRITES) as server,
        server.client.post("/api/transcriptions", data=WEBM) as answer,
    ):
        assert answer.status >= 400 and "too quiet" in await answer.text()
