"""list_files: list the contents of a folder."""

from __future__ import annotations

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.guard.paths import Entry, Paths
from moot.tools.basics import LookupTool, paths_of, size_word, title
from moot.tools.texts import printable
from moot.types.tool import ToolContext, ToolOutput, View

ENTRIES = 500


class ListFilesArguments(BaseModel):
    path: str = Field(default=".", description="Folder to list")


class ListFiles(LookupTool):
    """The `list_files` tool, for a single folder."""

    name = "list_files"
    description = "List the files and folders in a folder."
    arguments = ListFilesArguments
    effects = frozenset({"read"})
    examples = (
        {"user": "Which files are here?", "arguments": {"path": "."}},
        {"user": "What is in the docs folder?", "arguments": {"path": "docs"}},
    )

    async def call(self, arguments: ListFilesArguments, context: ToolContext) -> ToolOutput:
        return await to_thread.run_sync(_list, paths_of(context), arguments.path or ".", abandon_on_cancel=True)

    def doing(self, arguments: ListFilesArguments) -> View:
        return View(title("List", arguments.path or "."))


def _list(paths: Paths, path: str) -> ToolOutput:
    entries = paths.listdir(path, ENTRIES + 1)
    if not entries:
        return ToolOutput(f"{path} is empty.", empty=True)
    lines = [_line(entry) for entry in entries[:ENTRIES]]
    if len(entries) > ENTRIES:
        lines.append(f"(There are more than {ENTRIES} entries. Use find_files to search by name.)")
    return ToolOutput("\n".join(lines))


def _line(entry: Entry) -> str:
    name = printable(entry.name)
    match entry.kind:
        case "directory":
            return f"{name}/"
        case "link":
            return f"{name} (link)"
        case "file":
            return f"{name} ({size_word(entry.size)})"
        case _:
            return f"{name} (special file)"
