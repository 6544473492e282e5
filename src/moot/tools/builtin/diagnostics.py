"""diagnostics: run the configured checks on a file or on all files in a folder."""

from __future__ import annotations

import time

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.errors import Refused
from moot.guard.paths import Paths
from moot.tools.basics import LookupTool, count, paths_of, title
from moot.tools.checks import SECONDS, bounded, problems_of, read_file
from moot.tools.walk import Glob, walk
from moot.types.command_tool import Check
from moot.types.tool import ToolContext, ToolOutput, View

FILES = 50
LINES = 200
ALL_SECONDS = 60.0
"""Time limit in seconds for all files together. The time limit per file is the same as after a change."""


class DiagnosticsArguments(BaseModel):
    path: str = Field(default=".", min_length=1, description="File or folder to check")


class Diagnostics(LookupTool):
    """The `diagnostics` tool. The checks run in the sandbox and can change nothing."""

    name = "diagnostics"
    description = "Run the checks that the user configured, such as linters, on a file or a folder and return the problems that they find."
    arguments = DiagnosticsArguments
    effects = frozenset({"read"})
    hidden = True

    async def call(self, arguments: DiagnosticsArguments, context: ToolContext) -> ToolOutput:
        checks = tuple(check for check in context.checks if not check.formats)
        if not checks:
            raise Refused("No checks are configured.", fix="Ask the user to add checks to the 'checks' section of the configuration.")
        paths = paths_of(context)
        names, is_cut = await to_thread.run_sync(_names, paths, arguments.path, checks)
        ends, checked, lines, notes = time.monotonic() + ALL_SECONDS, 0, list[str](), list[str]()
        for name in names:
            left = ends - time.monotonic()
            file = await to_thread.run_sync(read_file, paths, name, checks) if left > 0 else None
            if left <= 0:
                is_cut = True
                break
            if file is not None:
                found = await problems_of(file, context, min(SECONDS, left))
                checked, lines, notes = checked + 1, [*lines, *found.lines], [*notes, *found.notes]
        notes = [*dict.fromkeys(notes)]
        if is_cut:
            notes.append(f"[Only {count(checked, 'file')} checked. Name a file or a smaller folder.]")
        heading = f"{count(checked, 'file')} checked: {'problems found' if lines else 'no problems'}."
        return ToolOutput("\n".join([heading, *bounded(lines, LINES), *bounded(notes, LINES)]), empty=not lines and not notes)

    def doing(self, arguments: DiagnosticsArguments) -> View:
        return View(title("Check", arguments.path))


def _names(paths: Paths, path: str, checks: tuple[Check, ...]) -> tuple[list[str], bool]:
    """Return the files to check, and True if there are more."""
    if paths.kind(path) != "directory":
        return [path], False
    globs = [Glob(check.pattern) for check in checks]
    found: list[str] = []
    for name, entry in walk(paths, path):
        whole = name if path == "." else f"{path}/{name}"
        if entry.kind == "file" and any(glob(whole) for glob in globs):
            if len(found) == FILES:
                return found, True
            found.append(whole)
    return found, False
