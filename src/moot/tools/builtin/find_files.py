"""find_files: find files by name."""

from __future__ import annotations

from pathlib import PurePosixPath

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.guard.paths import Paths
from moot.tools.basics import LookupTool, paths_of, title
from moot.tools.texts import printable
from moot.tools.walk import Glob, walk
from moot.types.tool import ToolContext, ToolOutput, View

FILES = 500


class FindFilesArguments(BaseModel):
    pattern: str = Field(min_length=1, max_length=500, description="Glob like *.py or src/**/*.md")
    path: str = Field(default=".", description="Folder to search")


class FindFiles(LookupTool):
    """The `find_files` tool. It skips files that `.gitignore` ignores."""

    name = "find_files"
    description = "Find files by name with a glob pattern, in all subfolders."
    arguments = FindFilesArguments
    effects = frozenset({"read"})
    examples = (
        {"user": "Where are the Python files?", "arguments": {"pattern": "*.py"}},
        {"user": "Is there a README?", "arguments": {"pattern": "README*"}},
    )

    async def call(self, arguments: FindFilesArguments, context: ToolContext) -> ToolOutput:
        return await to_thread.run_sync(_find, paths_of(context), arguments, abandon_on_cancel=True)

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
            return ToolOutput("\n".join([*found[:FILES], f"(There are more than {FILES} files. Narrow the pattern or the path.)"]))
    return ToolOutput("\n".join(found) or f"No file matches {arguments.pattern!r} in {base!r}.", empty=not found)
