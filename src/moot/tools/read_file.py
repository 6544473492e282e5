"""read_file: read numbered lines of a file, an image, or the rest of an output that was too long."""

from __future__ import annotations

import io
import tempfile
from dataclasses import dataclass
from typing import IO

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.errors import MootError, NotFound
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.basics import Defaults, count, failed, guarded, paths_of, size_word, title, words
from moot.tools.pages import LINES, Page, read_page
from moot.types.canonical import JsonObject
from moot.types.part import Part
from moot.types.tool import Effect, ToolContext, ToolOutput, View

PICTURE_BYTES = 3_750_000
"""Vendors accept 5 MB of base64."""
_HEAD = 1 << 20
_PIECE = 1 << 20


class ReadFileArguments(BaseModel):
    path: str = Field(min_length=1, description="File to read, or blob:<sha256> of a long output")
    start_line: int = Field(default=1, ge=1, description="First line, from 1")
    line_count: int = Field(default=LINES, ge=1, le=LINES, description="How many lines")
    start_character: int = Field(default=0, ge=0, description="First character of start_line, for a very long line")


class ReadFile(Defaults):
    """The `read_file` tool, for text and images."""

    name: str = "read_file"
    description: str = "Read a file. Lines are numbered; an image is shown."
    arguments: type[BaseModel] = ReadFileArguments
    concurrent: bool = True
    idempotent: bool = True
    effects: frozenset[Effect] = frozenset({"read"})
    examples: tuple[JsonObject, ...] = (
        {"user": "What does notes.txt say?", "arguments": {"path": "notes.txt"}},
        {"user": "Show me line 40 of src/app.py", "arguments": {"path": "src/app.py", "start_line": 40, "line_count": 1}},
    )

    async def run(self, arguments: ReadFileArguments, context: ToolContext) -> ToolOutput:
        if arguments.path.startswith("blob:"):
            return await _read_blob(arguments, context)
        found = await guarded(lambda: _read(paths_of(context), arguments))
        return await _shown(found, arguments.path, context) if isinstance(found, _Picture) else found

    def doing(self, arguments: ReadFileArguments) -> View:
        return View(title("Read", arguments.path), _range(arguments))


@dataclass(frozen=True, slots=True)
class _Picture:
    data: bytes
    media_type: str


def _range(arguments: ReadFileArguments) -> str:
    if arguments.start_line == 1 and arguments.line_count == LINES:
        return ""
    return f"lines {arguments.start_line}-{arguments.start_line + arguments.line_count - 1}"


def _read(paths: Paths, arguments: ReadFileArguments) -> ToolOutput | _Picture:
    with paths.open_read(arguments.path) as stream:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        head = stream.read(_HEAD)
        media_type = texts.picture_type(head)
        if media_type and size > PICTURE_BYTES:
            return failed(f"{arguments.path!r} is an image of {size_word(size)}; the maximum is {size_word(PICTURE_BYTES)}")
        if media_type:
            return _Picture(head + stream.read(PICTURE_BYTES), media_type)
        return _text(stream, head, size, arguments)


async def _shown(picture: _Picture, path: str, context: ToolContext) -> ToolOutput:
    blob = await context.blobs.put(picture.data, picture.media_type)
    part: Part = {"type": "file", "mediaType": picture.media_type, "filename": path, "url": f"blob:{blob.sha256}"}
    return ToolOutput(f"{path} is an image ({picture.media_type}, {size_word(blob.size)}), which is shown.", files=(part,))


async def _read_blob(arguments: ReadFileArguments, context: ToolContext) -> ToolOutput:
    name = arguments.path.removeprefix("blob:")
    with tempfile.SpooledTemporaryFile(_PIECE, prefix="moot-blob-") as copy:  # so that a large blob is not held in memory
        try:
            while piece := await context.blobs.get(name, offset=copy.tell(), limit=_PIECE):
                await to_thread.run_sync(copy.write, piece)
        except NotFound:
            return failed(f"{arguments.path!r} not found; use the name exactly as in the long output")
        except MootError as error:
            return failed(words(error))
        except OSError as error:
            return failed(f"{arguments.path!r} can't be read: {error.strerror or error}")
        size = copy.tell()
        copy.seek(0)
        head = copy.read(_HEAD)
        return await guarded(lambda: _text(copy, head, size, arguments), abandon=False)


def _text(stream: IO[bytes], head: bytes, size: int, arguments: ReadFileArguments) -> ToolOutput:
    if texts.is_binary(head):
        return failed(f"{arguments.path!r} is a binary file of {size_word(size)}, not text")
    encoding, mark = texts.encoding_of(head, whole=size <= len(head))
    stream.seek(len(mark))
    reader = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
    page = read_page(reader, arguments.start_line, arguments.line_count, arguments.start_character)
    reader.detach()
    return _output(page, texts.note(encoding, mark), arguments)


def _output(page: Page, note: str, arguments: ReadFileArguments) -> ToolOutput:
    if not page.total:
        return ToolOutput(f"{arguments.path} is empty.")
    if not page.shown:
        return failed(f"{arguments.path!r} has only {count(page.total, 'line')}; start_line={arguments.start_line} is past its end")
    closing = "; ".join(piece for piece in (page.where, note) if piece)
    return ToolOutput(f"{page.text}\n({closing})" if closing else page.text)
