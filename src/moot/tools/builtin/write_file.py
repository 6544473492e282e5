"""write_file: create a file or replace all of its content."""

from __future__ import annotations

from functools import partial

from pydantic import BaseModel, Field

from moot.errors import NotFound
from moot.guard.paths import Paths
from moot.tools import texts
from moot.tools.basics import BaseTool, count, paths_of, title
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
