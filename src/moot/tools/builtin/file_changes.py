"""The tools that write files and edit them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, Field

from moot.errors import NotFound, Refused
from moot.guard.paths import Paths, Stamp, stamp
from moot.tools import texts
from moot.tools.basics import BaseTool, count, paths_of, size_word, title
from moot.tools.checks import change_file, with_problems
from moot.tools.texts import unified
from moot.types.tool import ToolContext, ToolOutput, View

COMPARED_BYTES = 1_000_000


class WriteFileArguments(BaseModel):
    path: str = Field(min_length=1, description="File to write; missing folders are created")
    content: str = Field(description="The complete content of the file")


class WriteFile(BaseTool):
    """The `write_file` tool. It writes exactly the given text in UTF-8."""

    name = "write_file"
    description = "Write a whole file, new or replacing the old one. To change part of a file use edit_file."
    arguments = WriteFileArguments
    effects = frozenset({"write"})

    async def call(self, arguments: WriteFileArguments, context: ToolContext) -> ToolOutput:
        return await change_file(arguments.path, context, partial(_write, paths_of(context), arguments))

    def doing(self, arguments: WriteFileArguments) -> View:
        return View(title("Write", arguments.path), _length(arguments.content), unified(arguments.path, "", arguments.content), "diff")

    def done(self, arguments: WriteFileArguments, output: ToolOutput) -> View:
        if output.error:
            return View(title("Write", arguments.path), body=output.text)
        diff = output.value.get("diff") if isinstance(output.value, dict) else None
        body = diff if isinstance(diff, str) else unified(arguments.path, "", arguments.content)
        return with_problems(View(title("Write", arguments.path), _length(arguments.content), body, "diff"), output)


def _write(paths: Paths, arguments: WriteFileArguments) -> ToolOutput:
    before = _before(paths, arguments.path)
    with paths.open_write(arguments.path) as stream:
        stream.write(arguments.content.encode())
    verb = "Created" if before is None else "Replaced"
    diff = unified(arguments.path, before or "", arguments.content)
    return ToolOutput(f"{verb} {arguments.path} ({_length(arguments.content)}).", {"path": arguments.path, "diff": diff})


def _before(paths: Paths, path: str) -> str | None:
    """Return the previous content for the diff; empty for a binary file, None if there was no file."""
    try:
        with paths.open_read(path) as stream:
            head = stream.read(COMPARED_BYTES)
    except NotFound:
        return None
    return "" if texts.is_binary(head) else head.decode("utf-8", "replace")


def _length(content: str) -> str:
    return count(len(content.splitlines()), "line")


FILE_BYTES = 10_000_000
_SHOWN_LINES = 10


class Edit(BaseModel):
    old_text: str = Field(min_length=1, description="Text in the file, exactly, without line numbers")
    new_text: str = Field(description="Text to replace it with")
    replace_all: bool = Field(default=False, description="Replace all occurrences instead of exactly one")


class EditFileArguments(BaseModel):
    path: str = Field(min_length=1, description="File to change")
    edits: list[Edit] = Field(min_length=1, max_length=100, description="Applied in order")


class EditFile(BaseTool):
    """The `edit_file` tool, for text files. Line endings, encoding, byte order mark and permissions are kept."""

    name = "edit_file"
    description = "Replace exact pieces of text in a file. Each old_text must occur exactly once. All edits are made or none."
    arguments = EditFileArguments
    effects = frozenset({"write"})

    async def call(self, arguments: EditFileArguments, context: ToolContext) -> ToolOutput:
        return await change_file(arguments.path, context, partial(_edit, paths_of(context), arguments))

    def doing(self, arguments: EditFileArguments) -> View:
        body = "\n".join(_piece(arguments.path, edit) for edit in arguments.edits)
        return View(title("Edit", arguments.path), count(len(arguments.edits), "edit"), body, "diff")

    def done(self, arguments: EditFileArguments, output: ToolOutput) -> View:
        doing = self.doing(arguments)
        if output.error:
            return View(doing.title, doing.detail, output.text)
        diff = output.value.get("diff") if isinstance(output.value, dict) else None
        return with_problems(View(doing.title, doing.detail, diff if isinstance(diff, str) else doing.body, "diff"), output)


def _piece(path: str, edit: Edit) -> str:
    """Return the diff of an edit. It has no hunk headers, because the place of the edit in the file is not known."""
    return "\n".join(line for line in unified(path, edit.old_text, edit.new_text).split("\n") if not line.startswith("@@"))


@dataclass(frozen=True, slots=True)
class _File:
    text: texts.Text
    stamp: Stamp


def _edit(paths: Paths, arguments: EditFileArguments) -> ToolOutput:
    file = _load(paths, arguments.path)
    changed, places = edited(file.text.text, arguments.edits, file.text.newline)
    try:
        data = file.text.encode(changed)
    except UnicodeEncodeError as error:
        letter = error.object[error.start : error.start + 1]
        raise Refused(
            f"{arguments.path!r} has the encoding {file.text.encoding}, which can't represent {letter!r}. Nothing was changed."
        ) from error
    with paths.open_write(arguments.path, expect=file.stamp) as stream:
        stream.write(data)
    diff = unified(arguments.path, file.text.text, changed)
    return ToolOutput(f"Edited {arguments.path}: {count(places, 'replacement')}.", {"path": arguments.path, "diff": diff})


def edited(text: str, edits: Sequence[Edit], newline: str) -> tuple[str, int]:
    """Return the text after all edits, and the number of replaced places. Raise Refused if an edit is not possible."""
    places = 0
    for number, edit in enumerate(edits, 1):
        text, replaced = _replace(text, edit, newline, f"Edit {number} of {len(edits)}")
        places += replaced
    return text, places


def _load(paths: Paths, path: str) -> _File:
    with paths.open_read(path) as stream:
        seen = os.fstat(stream.fileno())
        data = stream.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise Refused(f"{path!r} is larger than {size_word(FILE_BYTES)}, the maximum for editing.")
    if texts.is_binary(data):
        raise Refused(f"{path!r} is a binary file and can't be edited.")
    try:
        return _File(texts.decode(data), stamp(seen))
    except UnicodeDecodeError as error:
        raise Refused(f"{path!r} is not valid {error.encoding} text and can't be edited.") from error


def _replace(text: str, edit: Edit, newline: str, which: str) -> tuple[str, int]:
    if edit.old_text == edit.new_text:
        raise Refused(f"{which}: old_text and new_text are identical. Nothing was changed.")
    # models always write LF, so LF matches any line ending of the file
    pattern = r"\r?\n".join(re.escape(line) for line in re.split(r"\r?\n", edit.old_text))
    starts = [match.start() for match in re.finditer(f"(?={pattern})", text)]
    if not starts:
        raise Refused(f"{which}: old_text was not found in the file. {_near(text, edit.old_text)}Nothing was changed.")
    if len(starts) > 1 and not edit.replace_all:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:_SHOWN_LINES])
        more = ", …" if len(starts) > _SHOWN_LINES else ""
        raise Refused(
            f"{which}: old_text occurs {len(starts)} times, at lines {lines}{more}. Nothing was changed.",
            fix="Add neighboring lines to old_text to make it unique, or set replace_all.",
        )
    return re.subn(pattern, lambda match: _with_newlines(edit.new_text, match.group(), newline), text)


def _with_newlines(new_text: str, replaced: str, newline: str) -> str:
    """Return the new text with the line endings of the replaced text, or of the file if it had none."""
    if "\n" in replaced:
        newline = "\r\n" if "\r\n" in replaced else "\n"
    return re.sub(r"\r?\n", newline, new_text)


def _near(text: str, wanted: str) -> str:
    """Return a hint about lines that differ from the expected ones only in whitespace, which is the most common mistake."""
    first = " ".join(next((line for line in wanted.splitlines() if line.strip()), "").split())
    if not first:
        return ""
    numbers = [str(number) for number, line in enumerate(text.split("\n"), 1) if first in " ".join(line.split())]
    places = ", ".join(numbers[:3])
    return f"Its first line resembles line {places}: check the whitespace and the lines after it. " if numbers else ""
