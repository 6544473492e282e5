"""generate_image: a picture by the model of the type image; absent until one is configured."""

from __future__ import annotations

from contextlib import suppress

from pydantic import BaseModel, Field

from moot.errors import MootError, NotFound, Refused
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.basics import Defaults, failed, guarded, paths_of, size_word, title, words
from moot.tools.given import read_given
from moot.types.canonical import Json
from moot.types.media import SOURCE_BYTES, Made, Media, Order
from moot.types.model import ModelRole
from moot.types.part import Part
from moot.types.tool import Effect, ToolContext, ToolOutput, View

_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}


class GenerateImageArguments(BaseModel):
    prompt: str = Field(min_length=1, max_length=32_000, description="What the picture shall show")
    path: str = Field(default="", description="File to save it in; without it the picture is only shown")
    size: str = Field(default="", pattern=r"^(\d{2,5}x\d{2,5})?$", description="WIDTHxHEIGHT in pixels")
    sources: list[str] = Field(default_factory=list, max_length=8, description="Picture files, or blob:<sha256>, to go from")


class GenerateImage(Defaults):
    """Keeps the picture as a blob, shows it, and saves it where it was asked to."""

    name: str = "generate_image"
    description: str = "Make a picture from a description, or from other pictures with what is to change."
    arguments: type[BaseModel] = GenerateImageArguments
    effects: frozenset[Effect] = frozenset({"network", "write"})
    model_type: ModelRole | None = "image"

    async def run(self, arguments: GenerateImageArguments, context: ToolContext) -> ToolOutput:
        sources: list[Media] = []
        for path in arguments.sources:
            source = await read_given(path, context, SOURCE_BYTES)
            if isinstance(source, ToolOutput):
                return source
            media_type = texts.picture_type(source)
            if not media_type:
                return failed(f"{path!r} is no picture")
            sources.append(Media(source, media_type, path.rpartition("/")[2]))
        if isinstance(refusal := await guarded(lambda: _check(paths_of(context), arguments.path)), ToolOutput):
            return refusal  # before anything is paid for
        try:
            made = await context.media.draw(Order(arguments.prompt, arguments.size, tuple(sources)))
        except MootError as error:
            return failed(words(error))
        return await _shown(made, arguments.path, context)

    def doing(self, arguments: GenerateImageArguments) -> View:
        return View(title("Draw", arguments.prompt), arguments.path)

    def done(self, arguments: GenerateImageArguments, output: ToolOutput) -> View:
        return View(title("Draw", arguments.prompt), arguments.path, output.text)


async def _shown(made: Made, path: str, context: ToolContext) -> ToolOutput:
    """The pictures as blobs that the model sees; the first of them saved."""
    files: list[Part] = []
    lines: list[str] = []
    kept: list[Json] = []
    for picture in made.pictures:
        media_type = texts.picture_type(picture.data) or picture.media_type
        blob = await context.blobs.put(picture.data, media_type)
        name = path or f"{blob.sha256[:12]}.{_EXTENSIONS.get(media_type, 'bin')}"
        files.append({"type": "file", "mediaType": media_type, "filename": name, "url": f"blob:{blob.sha256}"})
        kept.append({"blob": blob.sha256, "mediaType": media_type, "size": blob.size})
        lines.append(f"{made.model} made a picture ({media_type}, {size_word(blob.size)}); it is shown. It is kept as blob:{blob.sha256}.")
    if path:
        saved = await guarded(lambda: _save(paths_of(context), path, made.pictures[0].data), abandon=False)
        lines.append(f"It could not be saved: {saved.text}" if isinstance(saved, ToolOutput) else f"It is saved in {path}.")
    if made.text:
        lines.append(made.text)
    value: Json = {"pictures": kept, "model": made.model, "usage": made.usage.to_json(), "cost": made.cost}
    return ToolOutput("\n".join(lines), value, files=tuple(files))


def _check(paths: Paths, path: str) -> None:
    """Raises Refused for a place that nothing may be saved in; folders that are missing will be made."""
    with suppress(NotFound):
        if path and paths.kind(path) != "file":
            raise Refused(f"{path!r} is no file")


def _save(paths: Paths, path: str, data: bytes) -> None:
    with paths.open_write(path) as stream:
        stream.write(data)
