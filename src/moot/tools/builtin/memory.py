"""memory: read and write notes that are kept across conversations."""

from __future__ import annotations

from typing import Literal

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.errors import UsageError
from moot.guard.hidden import spelled_out, warning_of
from moot.tools.basics import BaseTool, count, size_word, title
from moot.tools.memory import FILE_BYTES, Memory
from moot.types.knowledge import MemoryFile
from moot.types.tool import ToolContext, ToolOutput, View


class MemoryArguments(BaseModel):
    action: Literal["list", "read", "write", "append", "search"]
    path: str = Field(default="", max_length=500, description="File, such as MEMORY.md or project/topics/build.md")
    content: str = Field(default="", max_length=FILE_BYTES, description="For write: the whole file. For append: lines to add")
    query: str = Field(default="", max_length=500, description="For search: words")


class MemoryTool(BaseTool):
    """The `memory` tool. It can access only memory folders, so no permission mode asks about it. Rules for it still apply."""

    name = "memory"
    description = (
        "Keep facts for later conversations in Markdown files. The beginning of each MEMORY.md is in your prompt: keep it a short index."
    )
    arguments = MemoryArguments
    effects = frozenset({"read"})
    hidden = True
    needs_folder = False
    examples = (
        {
            "user": "Remember that the tests need Docker.",
            "arguments": {"action": "append", "path": "MEMORY.md", "content": "- The tests need Docker."},
        },
        {"user": "What do you remember about the release?", "arguments": {"action": "search", "query": "release"}},
    )

    async def call(self, arguments: MemoryArguments, context: ToolContext) -> ToolOutput:
        is_change = arguments.action in ("write", "append")
        return await to_thread.run_sync(_call, Memory(context.memory), arguments, abandon_on_cancel=not is_change)

    def doing(self, arguments: MemoryArguments) -> View:
        match arguments.action:
            case "search":
                return View(title("Search memory for", arguments.query))
            case "list":
                return View("List memory")
            case "read":
                return View(title("Read memory", arguments.path))
            case _:
                verb = "Add to memory" if arguments.action == "append" else "Write memory"
                lines = count(len(arguments.content.splitlines()), "line")
                return View(title(verb, arguments.path), lines, arguments.content, "markdown")

    def done(self, arguments: MemoryArguments, output: ToolOutput) -> View:
        doing = self.doing(arguments)
        is_change = arguments.action in ("write", "append") and not output.error
        return View(doing.title, output.text if is_change else doing.detail, doing.body if is_change else output.text, doing.language)


def _call(memory: Memory, arguments: MemoryArguments) -> ToolOutput:
    if arguments.action == "list":
        lines = [_listed(file) for file in memory.files()]
        places = ", ".join(f"{folder.name}/" for folder in memory.folders)
        return ToolOutput("\n".join(lines) or f"Memory is empty. New files can be written in {places or 'no folder'}.")
    if arguments.action == "search":
        if not arguments.query.strip():
            raise UsageError("The query is empty.", fix="Specify the words to find.")
        found = memory.search(arguments.query)
        lines = [f"{spelled_out(match.name)}:{match.line}: {spelled_out(match.text)}" for match in found.matches] or ["No matches."]
        return ToolOutput("\n".join([*lines, *map(_listed, found.problems)]))
    if not arguments.path:
        raise UsageError("The path is missing.", fix="Use a name such as MEMORY.md.")
    if arguments.action == "read":
        text = memory.read(arguments.path)
        return ToolOutput("\n".join(filter(None, [spelled_out(text), _note(text)])) or "The file is empty.")
    is_new = memory.write(arguments.path, arguments.content, append=arguments.action == "append")
    verb = "Created" if is_new else "Added to" if arguments.action == "append" else "Replaced"
    return ToolOutput(" ".join(filter(None, [f"{verb} {arguments.path}.", _note(arguments.content)])))


def _listed(file: MemoryFile) -> str:
    facts = [size_word(file.size), *(["has hidden characters"] if file.hidden else []), *([file.problem] if file.problem else [])]
    return spelled_out(f"{file.name} ({', '.join(facts)})".replace("\n", " "))


def _note(text: str) -> str:
    warning = warning_of(text)
    return f"(It contains {warning}, spelled out as <U+…> when it is read.)" if warning else ""
