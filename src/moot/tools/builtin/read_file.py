"""read_file: read numbered lines of a file, an image, or a tool output that was shortened."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import IO

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.errors import NotFound, Refused
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.basics import LookupTool, count, paths_of, size_word, title
from moot.types.limits import TOOL_OUTPUT_CHARACTERS
from moot.types.message import Part
from moot.types.tool import ToolContext, ToolOutput, View

LINES = 1000
LINE_CHARACTERS = 2000
"""Maximum number of characters in a line, unless `start_character` is in it."""
PAGE_CHARACTERS = TOOL_OUTPUT_CHARACTERS - 1000
"""Maximum number of characters in a page. The rest of the output limit is reserved for the closing note."""
SCANNED_CHARACTERS = 20_000_000
"""Number of characters after which lines are no longer counted. The closing note says that there are more."""
_LINE_PIECE = 1 << 16
_NOTE_CHARACTERS = 150


@dataclass(slots=True)
class Page:
    """The requested lines and their position in the text."""

    shown: list[str] = field(default_factory=list[str])
    first: int = 0
    last: int = 0
    """Numbers of the first and last line shown, starting at 1. Both are 0 if no line is shown."""
    total: int = 0
    """Number of lines counted."""
    counted: bool = True
    """True if all lines were counted."""

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    @property
    def where(self) -> str:
        """The position, such as `lines 1-40 of 212; continue with start_line=41`; empty if everything is shown."""
        if self.first == 1 and self.last == self.total and self.counted:
            return ""
        total = f"{self.total}" if self.counted else f"more than {self.total}"
        further = f"; continue with start_line={self.last + 1}" if self.last < self.total or not self.counted else ""
        return f"lines {self.first}-{self.last} of {total}{further}"


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    """The line's text from the first requested character, at most a page long."""
    begin: int
    length: int


def read_page(reader: TextIOWrapper, start_line: int, line_count: int, start_character: int = 0) -> Page:
    """Return the lines starting at `start_line`, each preceded by its number and a tab. The reader must split lines at LF only."""
    page, room = Page(), PAGE_CHARACTERS
    full = False
    for line in _lines(reader, start_line, start_character):
        page.total = line.number
        if line.number < start_line or line.number >= start_line + line_count or full:
            continue
        text = _cut(line, room if line.begin else min(room, LINE_CHARACTERS))
        full = len(text) + _NOTE_CHARACTERS > room and page.first > 0
        if not full:
            page.shown.append(f"{line.number}\t{text}")
            page.first, page.last = page.first or line.number, line.number
            room -= len(text) + len(str(line.number)) + 2
    page.counted = not reader.read(1)
    return page


def _cut(line: _Line, limit: int) -> str:
    if line.begin + len(line.text) >= line.length and len(line.text) <= limit:
        return line.text
    text = line.text[: max(limit - _NOTE_CHARACTERS, 1)]
    more = f"start_line={line.number} start_character={line.begin + len(text)}"
    return f"{text} … (line truncated, it has {line.length} characters; continue with {more})"


def _lines(reader: TextIOWrapper, start_line: int, start_character: int) -> Iterator[_Line]:
    number = scanned = 0
    while scanned < SCANNED_CHARACTERS:
        number += 1
        begin = start_character if number == start_line else 0
        kept, length, ended = "", 0, False
        while not ended and (piece := reader.readline(_LINE_PIECE)):
            ended = piece.endswith("\n")
            if len(kept) < PAGE_CHARACTERS:
                kept += piece[max(0, begin - length) :][: PAGE_CHARACTERS - len(kept)]
            length += len(piece) - (len(piece) - len(piece.rstrip("\r\n")) if ended else 0)
            scanned += len(piece)
            if scanned >= SCANNED_CHARACTERS and not ended:
                break
        if not ended and not length:
            return
        yield _Line(number, kept.rstrip("\r\n") if ended else kept, begin, length)


PICTURE_BYTES = 3_750_000
"""Maximum size of an image in bytes. Vendors accept 5 MB of base64."""
_HEAD = 1 << 20
_PIECE = 1 << 20


class ReadFileArguments(BaseModel):
    path: str = Field(min_length=1, description="File to read, or blob:<sha256> of a long output")
    start_line: int = Field(default=1, ge=1, description="First line, from 1")
    line_count: int = Field(default=LINES, ge=1, le=LINES, description="How many lines")
    start_character: int = Field(default=0, ge=0, description="First character of start_line, for a very long line")


class ReadFile(LookupTool):
    """The `read_file` tool, for text and images."""

    name = "read_file"
    description = "Read a file. Lines are numbered; an image is shown."
    arguments = ReadFileArguments
    effects = frozenset({"read"})
    examples = (
        {"user": "What does notes.txt say?", "arguments": {"path": "notes.txt"}},
        {"user": "Show me line 40 of src/app.py", "arguments": {"path": "src/app.py", "start_line": 40, "line_count": 1}},
    )

    async def call(self, arguments: ReadFileArguments, context: ToolContext) -> ToolOutput:
        if arguments.path.startswith("blob:"):
            return await _read_blob(arguments, context)
        found = await to_thread.run_sync(_read, paths_of(context), arguments, abandon_on_cancel=True)
        if isinstance(found, ToolOutput):
            return found
        blob = await context.blobs.put(found.data, found.media_type)
        part: Part = {"type": "file", "mediaType": found.media_type, "filename": arguments.path, "url": f"blob:{blob.sha256}"}
        return ToolOutput(f"{arguments.path} is an image ({found.media_type}, {size_word(blob.size)}). It is attached.", files=(part,))

    def doing(self, arguments: ReadFileArguments) -> View:
        whole = arguments.start_line == 1 and arguments.line_count == LINES
        lines = f"lines {arguments.start_line}-{arguments.start_line + arguments.line_count - 1}"
        return View(title("Read", arguments.path), "" if whole else lines)


@dataclass(frozen=True, slots=True)
class _Picture:
    data: bytes
    media_type: str


def _read(paths: Paths, arguments: ReadFileArguments) -> ToolOutput | _Picture:
    with paths.open_read(arguments.path) as stream:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        head = stream.read(_HEAD)
        media_type = texts.picture_type(head)
        if media_type and size > PICTURE_BYTES:
            raise Refused(f"{arguments.path!r} is an image of {size_word(size)}. The maximum is {size_word(PICTURE_BYTES)}.")
        if media_type:
            return _Picture(head + stream.read(PICTURE_BYTES), media_type)
        return _text(stream, head, size, arguments)


async def _read_blob(arguments: ReadFileArguments, context: ToolContext) -> ToolOutput:
    name = arguments.path.removeprefix("blob:")
    with tempfile.SpooledTemporaryFile(_PIECE, prefix="moot-blob-") as copy:  # a large blob must not be held in memory
        try:
            while piece := await context.blobs.get(name, offset=copy.tell(), limit=_PIECE):
                await to_thread.run_sync(copy.write, piece)
        except NotFound as error:
            raise NotFound(f"{arguments.path!r} not found.", fix="Use the name exactly as in the long output.") from error
        except OSError as error:
            raise Refused(f"{arguments.path!r} can't be read: {error.strerror or error}.") from error
        size = copy.tell()
        copy.seek(0)
        head = copy.read(_HEAD)
        return await to_thread.run_sync(_text, copy, head, size, arguments)


def _text(stream: IO[bytes], head: bytes, size: int, arguments: ReadFileArguments) -> ToolOutput:
    if texts.is_binary(head):
        raise Refused(f"{arguments.path!r} is a binary file of {size_word(size)}, not text.")
    encoding, mark = texts.encoding_of(head, whole=size <= len(head))
    stream.seek(len(mark))
    reader = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
    page = read_page(reader, arguments.start_line, arguments.line_count, arguments.start_character)
    reader.detach()
    if not page.total:
        return ToolOutput(f"{arguments.path} is empty.", empty=True)
    if not page.shown:
        raise Refused(f"{arguments.path!r} has only {count(page.total, 'line')}: start_line={arguments.start_line} is past its end.")
    closing = "; ".join(piece for piece in (page.where, texts.note(encoding, mark)) if piece)
    return ToolOutput(f"{page.text}\n({closing})" if closing else page.text)
