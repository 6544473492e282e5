"""find_files: find files by name."""

from __future__ import annotations

from pathlib import PurePosixPath

from pydantic import BaseModel, Field

from moot.guard.paths import Paths
from moot.tools.basics import Defaults, paths_of, run_guarded, title
from moot.tools.texts import printable
from moot.tools.walk import Glob, walk
from moot.types.approval import Effect
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput, View

FILES = 500


class FindFilesArguments(BaseModel):
    pattern: str = Field(min_length=1, max_length=500, description="Glob like *.py or src/**/*.md")
    path: str = Field(default=".", description="Folder to search")


class FindFiles(Defaults):
    """The `find_files` tool. Files ignored by `.gitignore` are left out."""

    name: str = "find_files"
    description: str = "Find files by name with a glob pattern, in all subfolders."
    arguments: type[BaseModel] = FindFilesArguments
    concurrent: bool = True
    idempotent: bool = True
    effects: frozenset[Effect] = frozenset({"read"})
    examples: tuple[JsonObject, ...] = (
        {"user": "Where are the Python files?", "arguments": {"pattern": "*.py"}},
        {"user": "Is there a README?", "arguments": {"pattern": "README*"}},
    )

    async def run(self, arguments: FindFilesArguments, context: ToolContext) -> ToolOutput:
        return await run_guarded(lambda: _find(paths_of(context), arguments))

    def doing(self, arguments: FindFilesArguments) -> View:
        return View(title("Find", arguments.pattern), "" if arguments.path in ("", ".") else f"in {arguments.path}")


def _find(paths: Paths, arguments: FindFilesArguments) -> ToolOutput:
    base = arguments.path or "."
    wanted = Glob(arguments.pattern)
    found: list[str] = []
    for path, entry in walk(paths, base):
        if entry.kind != "directory" and wanted(path):
            found.append(printable(str(PurePosixPath(base) / path)))
        if len(found) > FILES:
            return ToolOutput("\n".join([*found[:FILES], f"(more than {FILES} files; narrow the pattern or the path)"]))
    return ToolOutput("\n".join(found) or f"no file matches {arguments.pattern!r} in {base!r}")
