"""The tools for pictures and sound."""

from __future__ import annotations

from contextlib import suppress

import anyio.to_thread
from pydantic import BaseModel, Field

from moot.convert.files.media_types import SOUND_BYTES, SOUND_FORMATS, sound_type
from moot.errors import MootError, NotFound, Refused
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.basics import BaseTool, LookupTool, error_text, paths_of, read_source, size_word, title
from moot.types.canonical import Json
from moot.types.media import ImageRequest, Media, MediaResult
from moot.types.message import Part
from moot.types.model import ModelRole
from moot.types.tool import ToolContext, ToolOutput, View

_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}

SOURCE_BYTES = 20_000_000
"""Maximum size of an image to edit."""


class GenerateImageArguments(BaseModel):
    prompt: str = Field(min_length=1, max_length=32_000, description="What the image should show")
    path: str = Field(default="", description="File to save the image to; if empty, it is only shown")
    size: str = Field(default="", pattern=r"^(\d{2,5}x\d{2,5})?$", description="WIDTHxHEIGHT in pixels")
    sources: list[str] = Field(default_factory=list, max_length=8, description="Image files, or blob:<sha256>, to start from")


class GenerateImage(BaseTool):
    """The `generate_image` tool. The image is stored as a blob, shown, and saved to a file if requested."""

    name = "generate_image"
    description = "Generate an image from a description, or from other images and the changes to make."
    arguments = GenerateImageArguments
    effects = frozenset({"network", "write"})
    model_type: ModelRole = "image"

    async def call(self, arguments: GenerateImageArguments, context: ToolContext) -> ToolOutput:
        sources: list[Media] = []
        for path in arguments.sources:
            source = await read_source(path, context, SOURCE_BYTES)
            media_type = texts.picture_type(source)
            if not media_type:
                raise Refused(f"{path!r} is not an image.")
            sources.append(Media(source, media_type, path.rpartition("/")[2]))
        await anyio.to_thread.run_sync(
            _check, paths_of(context), arguments.path, abandon_on_cancel=True
        )  # check before paying for the call
        made = await context.services.media.draw(ImageRequest(arguments.prompt, arguments.size, tuple(sources)))
        return await _shown(made, arguments.path, context)

    def doing(self, arguments: GenerateImageArguments) -> View:
        return View(title("Draw", arguments.prompt), arguments.path)


async def _shown(made: MediaResult, path: str, context: ToolContext) -> ToolOutput:
    """Store the images as blobs, save the first one to `path` if it is set, and return the output."""
    files: list[Part] = []
    lines: list[str] = []
    stored: list[Json] = []
    for picture in made.pictures:
        media_type = texts.picture_type(picture.data) or picture.media_type
        blob = await context.blobs.put(picture.data, media_type)
        name = path or f"{blob.sha256[:12]}.{_EXTENSIONS.get(media_type, 'bin')}"
        files.append({"type": "file", "mediaType": media_type, "filename": name, "url": f"blob:{blob.sha256}"})
        stored.append({"blob": blob.sha256, "mediaType": media_type, "size": blob.size})
        lines.append(
            f"{made.model} generated an image ({media_type}, {size_word(blob.size)}), which is shown and stored as blob:{blob.sha256}."
        )
    if path:
        try:
            await anyio.to_thread.run_sync(_save, paths_of(context), path, made.pictures[0].data)
            lines.append(f"It was saved to {path}.")
        except (MootError, OSError) as error:
            lines.append(f"It could not be saved: {error_text(error)}")
    if made.text:
        lines.append(made.text)
    value: Json = {"pictures": stored, "model": made.model, "usage": made.usage.to_json(), "cost": made.cost}
    return ToolOutput("\n".join(lines), value, files=tuple(files))


def _check(paths: Paths, path: str) -> None:
    """Raise Refused if nothing can be saved to this path. Missing folders are created later."""
    with suppress(NotFound):
        if path and paths.kind(path) != "file":
            raise Refused(f"{path!r} is not a file.")


def _save(paths: Paths, path: str, data: bytes) -> None:
    with paths.open_write(path) as stream:
        stream.write(data)


class TranscribeAudioArguments(BaseModel):
    path: str = Field(min_length=1, description="Recording to transcribe (mp3, wav, ogg, flac, m4a, webm), or blob:<sha256>")
    language: str = Field(default="", pattern=r"^([a-z]{2,3})?$", description="Language code, such as de, if known")


class TranscribeAudio(LookupTool):
    """The `transcribe_audio` tool."""

    name = "transcribe_audio"
    description = "Transcribe the speech in a recording."
    arguments = TranscribeAudioArguments
    effects = frozenset({"read", "network"})
    model_type: ModelRole = "transcription"

    async def call(self, arguments: TranscribeAudioArguments, context: ToolContext) -> ToolOutput:
        data = await read_source(arguments.path, context, SOUND_BYTES)
        kind = sound_type(data)
        if kind is None:
            raise Refused(f"{arguments.path!r} is not a recording in a supported format: {SOUND_FORMATS}.")
        made = await context.services.media.transcribe(Media(data, kind.media_type, f"sound.{kind.ending}"), arguments.language)
        value: Json = {"text": made.text, "model": made.model, "usage": made.usage.to_json(), "cost": made.cost}
        return ToolOutput(made.text or "The recording contains no speech.", value)

    def doing(self, arguments: TranscribeAudioArguments) -> View:
        return View(title("Listen to", arguments.path))
