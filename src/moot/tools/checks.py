"""The configured formatters and checks, which run in the sandbox after a file has been changed."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import cast

from anyio import to_thread

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.guard.processes import child_environment, output
from moot.guard.sandbox.protected import Watch
from moot.guard.terminal import Cleaner
from moot.tools import texts
from moot.tools.basics import count, paths_of
from moot.tools.jobs import shell_words
from moot.tools.walk import Glob
from moot.types.canonical import Json
from moot.types.command_tool import Check
from moot.types.sandbox import Confinement
from moot.types.tool import ToolContext, ToolOutput, View

SECONDS = 5.0
"""Time limit in seconds for all formatters and checks that run after one change."""
BEFORE_SECONDS = 2.0
"""Part of `SECONDS` that is used to find the problems that existed before the change."""
LINES = 20
"""Maximum number of lines that are added to a tool's output for new problems, and for a formatter's changes."""
LINE_CHARACTERS = 300
OUTPUT_BYTES = 200_000
FILE_BYTES = 10_000_000
"""Larger files are neither formatted nor checked."""
_KEPT_FILES = 100
_NAME_CHARACTERS = 80
_DIGITS = re.compile(r"\d+")
_CACHES = ("RUFF_CACHE_DIR", "MYPY_CACHE_DIR", "CARGO_TARGET_DIR", "PYTHONPYCACHEPREFIX")
"""Variables that make common programs put their caches outside of the project, where a check can't write."""
_NOT_FOUND = (126, 127)
"""Exit codes of a shell for a program that it can't start."""


@dataclass(frozen=True, slots=True)
class File:
    """A file and the commands to run on it."""

    path: str
    """Path as shown to people and passed to commands: relative to the conversation's folder if the file is below it."""
    data: bytes
    commands: tuple[Check, ...]

    @property
    def digest(self) -> bytes:
        return blake2b(self.data, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Problems:
    """The output of a file's checks."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about checks that did not finish."""


@dataclass(slots=True)
class Known:
    """The problems in the last checked version of each file, by path.

    If there are too many files, the least recently checked one is dropped.
    """

    found: OrderedDict[str, tuple[bytes, Problems]] = field(default_factory=OrderedDict[str, tuple[bytes, Problems]])

    def get(self, file: File) -> Problems | None:
        digest, problems = self.found.get(file.path, (b"", None))
        return problems if digest == file.digest else None

    def put(self, file: File, problems: Problems) -> None:
        self.found[file.path] = file.digest, problems
        self.found.move_to_end(file.path)
        while len(self.found) > _KEPT_FILES:
            self.found.popitem(last=False)


async def change_file(path: str, context: ToolContext, change: Callable[[], ToolOutput]) -> ToolOutput:
    """Change a file, then run its formatters and checks. Their results are added to the output. Raise MootError as `change` does.

    `change` runs in a thread.
    """
    if not context.checks:
        return await to_thread.run_sync(change)
    ends = time.monotonic() + SECONDS
    paths = paths_of(context)
    before = await to_thread.run_sync(read_file, paths, path, context.checks)
    known = context.kept("checks", Known)
    earlier = Problems() if before is None else known.get(before)
    if before is not None and earlier is None:
        earlier = await problems_of(before, context, BEFORE_SECONDS)
        known.put(before, earlier)
    done = await to_thread.run_sync(change)
    written = await to_thread.run_sync(read_file, paths, path, context.checks)
    if written is None or not written.commands:
        return done
    file, notes = await _formatted(written, context, ends)
    now = await problems_of(file, context, max(ends - time.monotonic(), 0.1))
    known.put(file, now)
    return _with_results(done, before, written, file, earlier or Problems(), replace(now, notes=(*notes, *now.notes)))


def read_file(paths: Paths, path: str, checks: Iterable[Check]) -> File | None:
    """Return a file with the commands to run on it; None if it does not exist, can't be read or is too large."""
    with suppress(MootError, OSError):
        with paths.open_read(path) as stream:
            data = stream.read(FILE_BYTES + 1)
        shown = texts.printable(paths.shown(paths.resolve(path)))
        commands = tuple(check for check in checks if Glob(check.pattern)(shown.lstrip("/")))
        return File(f"./{shown}" if shown.startswith("-") else shown, data, commands) if len(data) <= FILE_BYTES else None
    return None


async def problems_of(file: File, context: ToolContext, seconds: float) -> Problems:
    """Return what the file's checks print. They run at the same time and can change nothing."""
    checks = [check for check in file.commands if not check.formats]
    found = await asyncio.gather(*(_run(check, file.path, context, seconds) for check in checks))
    return Problems(tuple(line for lines, _ in found for line in lines), tuple(note for _, notes in found for note in notes))


def new_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines that did not exist before. Numbers in them are ignored, because line numbers change when lines move.

    If several lines differ only in numbers, the first ones are new, because an edit moves the lines after it.
    """
    exact = Counter(before) & Counter(after)
    gone = Counter(_DIGITS.sub("0", line) for line in (Counter(before) - exact).elements())
    found: list[str] = []
    for line in reversed(after):
        if exact[line]:
            exact[line] -= 1
        elif gone[key := _DIGITS.sub("0", line)]:
            gone[key] -= 1
        else:
            found.append(line)
    return found[::-1]


def bounded(lines: Sequence[str], limit: int) -> list[str]:
    """Return at most `limit` lines, with long ones truncated, and a note about the others."""
    shown = [line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]} …" for line in lines[:limit]]
    return [*shown, f"[{count(len(lines) - limit, 'more line')}]"] if len(lines) > limit else shown


def with_problems(view: View, output: ToolOutput) -> View:
    """Add the number of lines with new problems to the view's detail."""
    number = output.value.get("problems") if isinstance(output.value, dict) else None
    words = f"{count(number, 'line')} from checks" if isinstance(number, int) and number else ""
    return replace(view, detail=", ".join(filter(None, (view.detail, words))))


# ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _formatted(file: File, context: ToolContext, ends: float) -> tuple[File, list[str]]:
    """Run the formatters in order. Return the resulting file, and notes. Changes made by a failed formatter are undone."""
    notes: list[str] = []
    paths = paths_of(context)
    for formatter in (check for check in file.commands if check.formats):
        printed, problems = await _run(formatter, file.path, context, max(ends - time.monotonic(), 0.1))
        now = await to_thread.run_sync(read_file, paths, file.path, context.checks)
        if not printed and not problems and now is not None:
            file = now
            continue
        reason = problems or [f"[{_name(formatter)} failed: {bounded(printed, 1)[0]}]"]
        notes += reason
        if now is None or now.data != file.data:
            notes.append(await to_thread.run_sync(_restore, paths, file))
    return file, notes


def _restore(paths: Paths, file: File) -> str:
    try:
        with paths.open_write(file.path) as stream:
            stream.write(file.data)
    except (MootError, OSError) as error:
        return f"[Its changes to {file.path} could not be undone: {error}]"
    return f"[Its changes to {file.path} were undone.]"


async def _run(check: Check, path: str, context: ToolContext, seconds: float) -> tuple[list[str], list[str]]:
    """Return the lines that a command printed if it found problems, and notes if it did not finish."""
    try:
        line = check.line(path)
        sandbox = await context.confinement(line)
        if sandbox is None:
            return [], [f"[{_name(check)} did not run, because the sandbox is turned off or not available]"]
        return await _run_in(sandbox, check, line, context, seconds)
    except ValueError as error:
        return [], [f"[{_name(check)} did not run: {error}]"]
    except (MootError, OSError) as error:
        return [], [f"[{_name(check)} did not run: {error.message if isinstance(error, MootError) else error.strerror}]"]


async def _run_in(sandbox: Confinement, check: Check, line: str, context: ToolContext, seconds: float) -> tuple[list[str], list[str]]:
    sandbox = replace(sandbox, network=False) if check.formats else sandbox.read_only()
    temporary = "/tmp" if sandbox.is_complete else sandbox.scratch / "tmp"
    env = {**child_environment(), "NO_COLOR": "1", **{name: f"{temporary}/{name.lower()}" for name in _CACHES}}
    watch = await to_thread.run_sync(Watch.start, sandbox) if check.formats else None
    try:
        ended = await output(shell_words(line), cwd=context.directory, env=env, timeout=seconds, limit=OUTPUT_BYTES, sandbox=sandbox)
    finally:
        findings = await to_thread.run_sync(watch.finish) if watch is not None else []
    if ended.code is None:
        return [], [f"[{_name(check)} was killed: it did not finish in time or printed too much]", *findings]
    if ended.code in _NOT_FOUND:
        return [], [f"[{_name(check)} did not run: its program was not found or can't be started]", *findings]
    if ended.code < 0 or ended.code > 128:
        return [], [f"[{_name(check)} crashed with exit code {ended.code}]", *findings]
    lines = _cleaned(ended.stdout + ended.stderr) if ended.code else []
    return lines or ([f"exit code {ended.code}"] if ended.code else []), findings


def _name(check: Check) -> str:
    words = " ".join(check.command.split())
    return f"'{words}'" if len(words) <= _NAME_CHARACTERS else f"'{words[:_NAME_CHARACTERS]} …'"


def _cleaned(data: bytes) -> list[str]:
    cleaner = Cleaner()
    text = cleaner.feed(data.decode("utf-8", "replace")) + cleaner.end()
    return [line.rstrip() for line in text.splitlines() if line.strip()]


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_results(done: ToolOutput, before: File | None, written: File, file: File, earlier: Problems, now: Problems) -> ToolOutput:
    lines = [done.text]
    value = dict(done.value) if isinstance(done.value, dict) else {}
    if file.data != written.data:
        changes = texts.unified(file.path, _text(written), _text(file)).splitlines()[2:]
        lines += ["The formatters of the configuration changed the file:", *bounded(changes, LINES)]
        value["diff"] = texts.unified(file.path, _text(before), _text(file))
    if new := new_lines(earlier.lines, now.lines):
        partial = "" if not earlier.notes else " (some may be older, because a check before the change did not finish)"
        lines += [f"New problems after this change{partial}:", *bounded(new, LINES)]
        value["problems"] = len(new)
    lines += bounded(now.notes, LINES)
    return replace(done, text="\n".join(lines), value=cast("Json", value) if value else done.value)


def _text(file: File | None) -> str:
    if file is None or texts.is_binary(file.data):
        return ""
    try:
        return texts.decode(file.data).text
    except UnicodeDecodeError:
        return ""
