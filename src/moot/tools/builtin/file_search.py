"""The tools that list folders and find files, by name or by content."""

from __future__ import annotations

import base64
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, cast

import anyio.to_thread
import orjson
from anyio import to_thread
from pydantic import BaseModel, Field

from moot.errors import NotFound, Refused
from moot.guard import processes
from moot.guard.paths import Entry, Paths
from moot.guard.processes import child_environment
from moot.tools.basics import LookupTool, paths_of, size_word, title
from moot.tools.patterns import FILE_BYTES, Match, Request, is_expression
from moot.tools.texts import printable
from moot.tools.walk import Glob, expanded, walk
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


MATCHES = 200
TEXT_CHARACTERS = 250
SECONDS = 20.0
_OUTPUT_BYTES = 20_000_000

# no user settings and no ignore rules of parent folders, so that the results are the same as those in Python
_RIPGREP = (
    *("--json", "--sort=path", "--crlf", "--hidden", "--glob=!.git", f"--max-filesize={FILE_BYTES}", "--no-messages", "--no-config"),
    *("--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
)


class SearchFilesArguments(BaseModel):
    pattern: str = Field(min_length=1, max_length=1000, description="Regular expression, or plain text")
    path: str = Field(default=".", description="Folder or file to search")
    glob: str = Field(default="", max_length=500, description="Only files like *.py")
    ignore_case: bool = Field(default=False)


class SearchFiles(LookupTool):
    """The `search_files` tool. It skips ignored, binary and very large files.

    It uses ripgrep if it is installed, otherwise Python. The output is the same.
    """

    name = "search_files"
    description = "Search the text of files for a pattern, in all subfolders. Shows file, line number and line."
    arguments = SearchFilesArguments
    effects = frozenset({"read"})
    examples = (
        {"user": "Where is the function parse defined?", "arguments": {"pattern": "def parse"}},
        {"user": "Which notes mention Oslo?", "arguments": {"pattern": "Oslo", "glob": "*.md"}},
    )

    async def call(self, arguments: SearchFilesArguments, context: ToolContext) -> ToolOutput:
        paths = paths_of(context)
        path = arguments.path or "."
        roots = tuple(str(root) for root in context.roots)
        request = Request(roots, str(context.directory), path, arguments.pattern, arguments.glob, arguments.ignore_case, MATCHES + 1)
        is_folder = await anyio.to_thread.run_sync(paths.kind, path, abandon_on_cancel=True) == "directory"
        ripgrep = shutil.which("rg", path=child_environment()["PATH"]) if is_folder else None
        found = await _by_ripgrep(ripgrep, request, paths) if ripgrep else None
        return _output(request, *(found or await _by_python(request)))

    def doing(self, arguments: SearchFilesArguments) -> View:
        places = [arguments.glob, "" if arguments.path in ("", ".") else f"in {arguments.path}"]
        return View(title("Search", arguments.pattern), " ".join(place for place in places if place))


async def _by_python(request: Request) -> tuple[list[Match], bool]:
    argv = [sys.executable, "-I", "-m", "moot.tools.patterns", orjson.dumps(asdict(request)).decode()]
    done = await processes.output(argv, timeout=SECONDS, limit=_OUTPUT_BYTES)
    if done.code not in (0, None):
        raise Refused(f"The search failed: {done.stderr.decode('utf-8', 'replace')[-500:]}")
    lines = done.stdout.split(b"\n")[:-1]
    return [Match(*orjson.loads(line)) for line in lines], done.code is not None


async def _by_ripgrep(ripgrep: str, request: Request, paths: Paths) -> tuple[list[Match], bool] | None:
    """Return the matches, and True if the search completed; None if ripgrep does not support the pattern."""
    base = await anyio.to_thread.run_sync(lambda: paths.resolve(request.path))
    options = [*_RIPGREP, *(["--ignore-case"] if request.ignore_case else [])]
    if request.glob:  # a type instead of --glob, which would include ignored files
        options += [*(f"--type-add=wanted:{one}" for one in expanded(request.glob)), "--type=wanted"]
    if not is_expression(request.pattern):
        options.append("--fixed-strings")
    if request.glob and "/" in request.glob:
        return None
    done = await processes.output([ripgrep, *options, f"--regexp={request.pattern}", "."], cwd=base, timeout=SECONDS, limit=_OUTPUT_BYTES)
    if done.code not in (0, 1, None) and b'"type":"summary"' not in done.stdout:
        return None
    matches = await anyio.to_thread.run_sync(lambda: list(islice(_allowed(_read(done.stdout), request.path, paths), request.limit)))
    return matches, done.code is not None


def _read(stdout: bytes) -> Iterator[Match]:
    """Yield the matches in ripgrep's JSON lines (https://docs.rs/grep-printer, `JSON`), except those in binary files."""
    pending: list[Match] = []
    for line in stdout.split(b"\n")[:-1]:
        event = cast("dict[str, Any]", orjson.loads(line))
        data = event["data"]
        if event["type"] == "match":
            text = _text(data["lines"]).removesuffix("\n").removesuffix("\r")
            pending.append(Match(_text(data["path"]).removeprefix("./"), data["line_number"], text))
        elif event["type"] == "end":
            if data["binary_offset"] is None:
                yield from pending
            pending = []
    yield from pending  # the output ended in the middle of a file


def _allowed(matches: Iterator[Match], base: str, paths: Paths) -> Iterator[Match]:
    """Yield the matches in files that may be read. ripgrep does not know which folders are forbidden."""
    allowed: dict[str, bool] = {}
    for match in matches:
        if match.path not in allowed:
            allowed[match.path] = _may_read(f"{base}/{match.path}", paths)
        if allowed[match.path]:
            yield match


def _may_read(path: str, paths: Paths) -> bool:
    try:
        return paths.kind(path) == "file"
    except NotFound:
        return "\ufffd" in path  # a name that is not UTF-8, so the path can't be reconstructed
    except Refused:
        return False


def _text(value: dict[str, str]) -> str:
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def _output(request: Request, matches: list[Match], complete: bool) -> ToolOutput:
    shown = matches[:MATCHES]
    lines = [f"{PurePosixPath(request.path) / match.path}:{match.number}: {_short(match.text)}" for match in shown]
    if len(matches) > MATCHES:
        lines.append(f"(There are more than {MATCHES} matches. Narrow the pattern, the path or the glob.)")
    elif not complete:
        limits = f"{SECONDS:.0f} seconds or {_OUTPUT_BYTES // 1_000_000} MB"
        lines.append(f"(The search was stopped after {limits}. Narrow the pattern, the path or the glob.)")
    if not is_expression(request.pattern):
        lines.append(f"({request.pattern!r} is not a valid regular expression and was searched as plain text.)")
    return ToolOutput("\n".join(lines) or f"No matches for {request.pattern!r} in {request.path!r}.", empty=not lines)


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]} … (line cut)"
