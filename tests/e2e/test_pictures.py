"""Images in requests to a model, over real HTTP in both dialects."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from moot.convert.files.media_types import Head, head_of
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.canonical import Json
from moot.types.message import Part, text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

SEES = {"scripted": {"modalities": ["text", "image"]}}
BLIND = {"scripted": {"modalities": ["text"]}}


def picture(width: int, height: int, format: str = "PNG") -> bytes:
    output = io.BytesIO()
    Image.new("L", (width, height)).save(output, format)
    return output.getvalue()


def part(data: bytes, media_type: str = "image/png", name: str = "photo") -> Part:
    return {"type": "file", "mediaType": media_type, "filename": name, "url": f"data:{media_type};base64,{base64.b64encode(data).decode()}"}


def sent(body: Json) -> list[tuple[str, bytes]]:
    """Return the images of a request: media type and bytes."""
    if isinstance(body, list):
        return [found for each in body for found in sent(each)]
    if not isinstance(body, dict):
        return []
    if body.get("type") == "base64":
        return [(str(body["media_type"]), base64.b64decode(str(body["data"])))]
    if isinstance(url := body.get("url"), str) and url.startswith("data:"):
        return [(url[5:].partition(";")[0], base64.b64decode(url.partition(",")[2]))]
    return [found for each in body.values() for found in sent(each)]


def details(body: Json) -> list[Any]:
    """Return the values of all fields for the detail of images in a request."""
    if isinstance(body, list):
        return [found for each in body for found in details(each)]
    if not isinstance(body, dict):
        return []
    own = [body[name] for name in ("detail", "mediaResolution") if name in body]
    return own + [found for each in body.values() for found in details(each)]


@pytest.mark.parametrize(
    ("dialect", "mixed", "low"),
    [
        ("openai-chat", ["low", "high"], ["low"]),
        ("openai-responses", ["low", "high"], ["low"]),
        ("google", ["MEDIA_RESOLUTION_HIGH"], ["MEDIA_RESOLUTION_LOW"]),
        ("anthropic", [], []),
    ],
)
async def test_the_detail_of_images_is_sent_if_the_api_has_it(stage: Any, dialect: str, mixed: list[str], low: list[str]) -> None:
    async with stage([Reply(text="I see."), Reply(text="Still.")], dialect=dialect, priced=SEES) as on:
        parts = (text_part("Look."), part(picture(3, 2)), {**part(picture(4, 2)), "detail": "high"})
        for own in (parts, parts[:2]):
            run = await on.follow(await on.engine.runs.submit(Prompt(own, directory=str(on.directory), settings={"detail": "low"})))
            assert run.status == "finished", run.error
        assert [details(request.json) for request in on.server.requests[:2]] == [mixed, low]


def notes(parts: Any) -> list[str]:
    return [each["data"]["text"] for each in parts if each["type"] == "data-note"]


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
@pytest.mark.parametrize(
    ("given", "said", "got"),
    [
        (part(picture(8_100, 10)), "8000 x 9, ", Head("image/jpeg", 8_000, 9)),
        (part(picture(30, 20, "BMP"), "image/bmp"), "30 x 20, ", Head("image/jpeg", 30, 20)),
        (part(picture(30, 20)), "", Head("image/png", 30, 20)),
        (part(picture(30, 20), "image/jpeg"), "", Head("image/png", 30, 20)),
    ],
    ids=["too wide", "another format", "as it is", "called wrong"],
)
async def test_an_image_is_sent_in_a_form_the_model_accepts(stage: Any, given: Part, said: str, got: Head, dialect: str) -> None:
    async with stage([Reply(text="I see."), Reply(text="Still.")], dialect=dialect, priced=SEES) as on:
        submitted = await on.engine.runs.submit(Prompt((text_part("Look."), given), directory=str(on.directory)))
        run = await on.follow(submitted)
        assert run.status == "finished", run.error
        [(media_type, data)] = sent(on.server.requests[0].json)
        assert head_of(data) == got and media_type == got.media_type
        told = notes((await on.engine.store.conversations.message(run.message)).parts)
        assert [said in note and "photo" in note for note in told] == ([True] if said else [])
        user = (await on.engine.store.conversations.branch(run.conversation))[0]
        assert user.parts[1]["url"] == given["url"]
        again, message = await on.ask("And now?", conversation=run.conversation)
        assert again.status == "finished" and sent(on.server.requests[1].json) == [(media_type, data)]
        assert "data-note" not in str(on.server.requests[1].json) and len(notes(message.parts)) == len(told)


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
async def test_an_unsupported_image_is_described_to_the_model_and_the_user(stage: Any, dialect: str) -> None:
    for facts, data, words in ((BLIND, picture(3, 3), "does not accept images"), (SEES, b"no picture", "can't be read")):
        async with stage([Reply(text="ok")], dialect=dialect, priced=facts) as on:
            submitted = await on.engine.runs.submit(Prompt((text_part("Look."), part(data)), directory=str(on.directory)))
            run = await on.follow(submitted)
            assert run.status == "finished", run.error
            assert sent(on.server.requests[0].json) == [] and "[photo" in str(on.server.requests[0].json["messages"])
            [told] = notes((await on.engine.store.conversations.message(run.message)).parts)
            assert words in told


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
async def test_an_image_read_by_a_tool_is_sent_and_reported_once(stage: Any, directory: Path, dialect: str) -> None:
    (directory / "wide.png").write_bytes(picture(8_100, 10))

    def script(recorded: Recorded) -> Reply:
        turns = str(recorded.json["messages"]).count("wide.png")
        if not turns:
            return Reply(tool_calls=[ToolCall("read_file", {"path": "wide.png"})])
        return Reply(text="wide") if len(on.server.requests) > 2 else Reply(tool_calls=[ToolCall("list_files", {"path": "."})])

    async with stage(script, dialect=dialect, priced=SEES) as on:
        run, message = await on.ask("Look.")
        assert run.status == "finished", run.error
        for request in on.server.requests[1:]:
            assert [head_of(data) for _, data in sent(request.json)] == [Head("image/jpeg", 8_000, 9)]
        assert len(notes(message.parts)) == 1


def test_pillow_is_not_imported_before_a_picture_must_be_made_to_fit() -> None:
    program = "import sys, moot.agents.request, moot.engine, moot.cli.run; print('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout.strip() == b"False"
