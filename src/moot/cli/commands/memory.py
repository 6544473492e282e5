"""The commands of `moot memory`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread

from moot.agents.prompt import guidance_paths
from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_bytes, moment, plural, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.editor import edit_text, save_text
from moot.cli.terminal.prompts.plain import confirm
from moot.errors import MootError, NeedsApproval, NotFound, Refused, UsageError
from moot.guard.hidden import hidden_characters, hidden_comments, spelled_out, warning_of
from moot.tools.memory import FILE_BYTES, INDEX, Memory, all_folders
from moot.types.canonical import Json, JsonObject
from moot.types.knowledge import MemoryFile

Name = Annotated[str, Parameter(metavar="NAME", help="Memory file, such as home/MEMORY.md, agents/reviewer/MEMORY.md or project/notes.md.")]


def _memory(output: Output, name: str = "") -> Memory:
    return Memory(all_folders(configured(output).settings.home, str(here()), name))


def list_files(*, json: AsJson = False, output: Out) -> None:
    """Print the memory and instruction files that apply in the current directory, with the closest ones last."""
    memory = _memory(output)
    kept = [_facts(file, "memory") for file in memory.files()]
    instructions = [_facts(_instructions(path), "instructions") for path in guidance_paths(str(here()))]
    nearest = [facts for facts in kept if str(facts["name"]).startswith("project/")]
    rows = [*(facts for facts in kept if facts not in nearest), *instructions, *nearest]
    if json:
        output.json({"data": [*rows]})
        return
    if not rows:
        output.say("moot: no memory yet; create some with 'moot memory edit home/MEMORY.md'", "dim")
        return
    print_table(
        output,
        ["NAME", "SIZE", "CHANGED", "NOTE", "PATH"],
        [[str(row["name"]), _size(row["size"]), _time(row["changed_at"]), _note(row), str(row["path"])] for row in rows],
    )


def _instructions(path: Path) -> MemoryFile:
    try:
        with path.open("rb") as file:
            status, text = os.fstat(file.fileno()), file.read(FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return MemoryFile(path.name, path, 0, 0, problem=f"It can't be read: {error.strerror}.")
    facts = (status.st_size, status.st_mtime_ns // 1_000_000, len(hidden_characters(text)), len(hidden_comments(text)))
    return MemoryFile(path.name, path, *facts)


def _facts(file: MemoryFile, kind: str) -> JsonObject:
    return {
        "name": file.name,
        "kind": kind,
        "path": str(file.path),
        "size": file.size,
        "changed_at": file.changed_at,
        "hidden": file.hidden,
        "comments": file.comments,
        "in_prompt": (kind == "instructions" or _is_index(file)) and (not file.problem or file.size > FILE_BYTES),
        "problem": file.problem or None,
    }


def _size(size: Json) -> str:
    return format_bytes(size) if isinstance(size, int) and size else "-"


def _time(changed_at: Json) -> str:
    return moment(changed_at) if isinstance(changed_at, int) and changed_at else "-"


def _is_index(file: MemoryFile) -> bool:
    return file.path.name == INDEX and file.name.count("/") == (2 if file.name.startswith("agents/") else 1)


def _note(row: JsonObject) -> str:
    notes = ["in the prompt"] if row["in_prompt"] else []
    hidden, comments = row["hidden"], row["comments"]
    notes += [plural(hidden, "hidden character")] if isinstance(hidden, int) and hidden else []
    notes += [plural(comments, "HTML comment")] if isinstance(comments, int) and comments else []
    notes += [str(row["problem"])] if row["problem"] else []
    return ", ".join(notes) or "-"


def show_file(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Print a memory file. Hidden characters are shown as names such as `<U+200B>`."""
    try:
        text = _memory(output, name).read(name)
    except NotFound as error:
        instructions = next((path for path in guidance_paths(str(here())) if path.name == name), None)
        if instructions is None:
            raise
        raise UsageError(f"{name!r} is an instruction file, not a memory file.", fix=f"Open {instructions}.") from error
    if json:
        output.json({"name": name, "text": text, "hidden": len(hidden_characters(text))})
        return
    output.line(spelled_out(text).removesuffix("\n"))
    _warn(text, output)


async def edit_file(name: Name, /, *, output: Out) -> None:
    """Edit a memory file, or create it."""
    if not output.attended:
        raise UsageError("Editing requires a terminal.", fix="Edit the file with any editor; 'moot memory list' prints its path.")
    memory = _memory(output, name)
    try:
        before = await to_thread.run_sync(memory.read, name)
    except NotFound:
        before = None
    edited = await edit_text(before or "", suffix=".md", output=output)
    if edited is None or edited == (before or ""):
        output.say("moot: no changes", "dim")
        return

    def check(current: str | None) -> None:
        if current != before:
            raise Refused(f"Another program changed {name!r} while you edited it.")

    try:
        await to_thread.run_sync(partial(memory.write, name, edited, check=check))
    except MootError as error:
        kept = await save_text(edited)
        raise type(error)(error.message, fix=f"Your version is in {kept}. {error.fix}".strip()) from error
    output.say(f"moot: saved {name}", "green")
    _warn(edited, output)


def search_files(*words: Annotated[str, Parameter(metavar="WORD", help="Words to find.")], json: AsJson = False, output: Out) -> None:
    """Print the lines that contain all of the words. If there are none, print the lines that contain the most words."""
    if not " ".join(words).strip():
        raise UsageError("No search words were given.", fix="moot memory search WORD")
    found = _memory(output).search(" ".join(words))
    if json:
        output.json(
            {
                "data": [{"name": match.name, "line": match.line, "text": match.text} for match in found.matches],
                "problems": [{"name": file.name, "problem": file.problem} for file in found.problems],
            }
        )
        return
    for match in found.matches:
        output.line(f"{output.styled(f'{match.name}:{match.line}', 'cyan')}: {spelled_out(match.text)}")
    for file in found.problems:
        output.say(f"moot: {file.name}: {file.problem}", "yellow")
    if not found.matches:
        output.say("moot: no matches", "dim")


async def delete_file(
    name: Name, /, *, yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False, output: Out
) -> int:
    """Delete a memory file."""
    memory = _memory(output, name)
    await to_thread.run_sync(memory.beginning, name)
    if not yes:
        if not output.attended:
            raise NeedsApproval(f"Delete {name!r}? This needs confirmation.", fix="Use --yes.")
        if not await confirm(f"Delete {name!r}?", output):
            output.say("moot: the file was not deleted", "dim")
            return 1
    await to_thread.run_sync(memory.delete, name)
    output.say(f"moot: deleted {name}")
    return 0


def _warn(text: str, output: Output) -> None:
    if warning := warning_of(text):
        output.say(f"moot: the file contains {warning}", "yellow")
