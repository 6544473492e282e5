"""generate_image: generate an image with the configured image model. Unavailable if there is none."""

from __future__ import annotations

from contextlib import suppress

from pydantic import BaseModel, Field

from moot.errors import MootError, NotFound, Refused
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.basics import Defaults, error_text, failed, paths_of, read_source, run_guarded, size_word, title
from moot.types.approval import Effect
from moot.types.canonical import Json
from moot.types.media import SOURCE_BYTES, ImageRequest, Media, MediaResult
from moot.types.message import Part
from moot.types.model import ModelRole
from moot.types.tool import ToolContext, ToolOutput, View

_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}


class GenerateImageArguments(BaseModel):
    prompt: str = Field(min_length=1, max_length=32_000, description="What the image should show")
    path: str = Field(default="", description="File to save the image to; if empty, it is only shown")
    size: str = Field(default="", pattern=r"^(\d{2,5}x\d{2,5})?$", description="WIDTHxHEIGHT in pixels")
    sources: list[str] = Field(default_factory=list, max_length=8, description="Image files, or blob:<sha256>, to start from")


class GenerateImage(Defaults):
    """The `generate_image` tool. The image is stored as a blob, shown, and saved to a file if requested."""

    name: str = "generate_image"
    description: str = "Generate an image from a description, or from other images and the changes to make."
    arguments: type[BaseModel] = GenerateImageArguments
    effects: frozenset[Effect] = frozenset({"network", "write"})
    model_type: ModelRole | None = "image"

    async def run(self, arguments: GenerateImageArguments, context: ToolContext) -> ToolOutput:
        sources: list[Media] = []
        for path in arguments.sources:
            source = await read_source(path, context, SOURCE_BYTES)
            if isinstance(source, ToolOutput):
                return source
            media_type = texts.picture_type(source)
            if not media_type:
                return failed(f"{path!r} is not an image")
            sources.append(Media(source, media_type, path.rpartition("/")[2]))
        if isinstance(refusal := await run_guarded(lambda: _check(paths_of(context), arguments.path)), ToolOutput):
            return refusal  # before the call costs anything
        try:
            made = await context.media.draw(ImageRequest(arguments.prompt, arguments.size, tuple(sources)))
        except MootError as error:
            return failed(error_text(error))
        return await _shown(made, arguments.path, context)

    def doing(self, arguments: GenerateImageArguments) -> View:
        return View(title("Draw", arguments.prompt), arguments.path)


async def _shown(made: MediaResult, path: str, context: ToolContext) -> ToolOutput:
    """Store the images as blobs for the model, and save the first one."""
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
        saved = await run_guarded(lambda: _save(paths_of(context), path, made.pictures[0].data), abandon=False)
        lines.append(f"It could not be saved: {saved.text}" if isinstance(saved, ToolOutput) else f"It was saved to {path}.")
    if made.text:
        lines.append(made.text)
    value: Json = {"pictures": stored, "model": made.model, "usage": made.usage.to_json(), "cost": made.cost}
    return ToolOutput("\n".join(lines), value, files=tuple(files))


def _check(paths: Paths, path: str) -> None:
    """Raise Refused if nothing can be saved to this path. Missing folders are created later."""
    with suppress(NotFound):
        if path and paths.kind(path) != "file":
            raise Refused(f"{path!r} is not a file")


def _save(paths: Paths, path: str, data: bytes) -> None:
    with paths.open_write(path) as stream:
        stream.write(data)
