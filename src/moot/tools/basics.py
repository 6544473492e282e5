"""Shared basics of tools: default flags, failed outputs, file access in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, ValidationError

from moot.errors import MootError, NotFound, UsageError
from moot.guard.paths import Paths
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput, View

__all__ = ["Defaults", "ToolSettings", "count", "error_text", "failed", "paths_of", "read_source", "run_guarded", "size_word", "title"]


TITLE_CHARACTERS = 120

T = TypeVar("T")


class ToolSettings(BaseModel):
    """The section `tools.<name>` of the configuration. This base class has no settings."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)  # a key from an environment variable may consist of digits

    @classmethod
    def of(cls, name: str, values: JsonObject) -> Self:
        """Return the validated settings. Raise UsageError that names the key but never its value."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(step) for step in ("tools", name, *first["loc"]))
            problem = UsageError(f"{where}: {first['msg']}", fix="moot config check")
        raise problem  # raised here because the exception above quotes the value


class Defaults:
    """Default flags of a tool."""

    settings: type[BaseModel] = ToolSettings

    concurrent: bool = False
    idempotent: bool = False
    hidden: bool = False
    beta: bool = False
    badge: str = ""
    examples: tuple[JsonObject, ...] = ()

    def doing(self, arguments: Any) -> View:
        """Return the view of a running call."""
        raise NotImplementedError

    def done(self, arguments: Any, output: ToolOutput) -> View:
        """Return the view of a finished call, which shows the output."""
        doing = self.doing(arguments)
        return View(doing.title, doing.detail, output.text)


def paths_of(context: ToolContext) -> Paths:
    """Return the guard for the files that this call may access."""
    return Paths(context.roots, context.directory)


def failed(text: str) -> ToolOutput:
    """Return the output of a failed call."""
    return ToolOutput(text, error=True)


def error_text(error: MootError) -> str:
    """Return an error as shown to a model."""
    return error.advice()


async def run_guarded(work: Callable[[], T], *, abandon: bool = True) -> T | ToolOutput:
    """Run the work in a thread and return its result. An access error or missing file becomes a failed output.

    With `abandon`, a cancelled call does not wait for the thread. Don't use it for writing.
    """
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=abandon)
    except MootError as error:
        return failed(error_text(error))
    except OSError as error:  # an I/O error in the middle of a file
        return failed(f"{error.filename or 'the file'}: {error.strerror or error}")


def title(verb: str, subject: str) -> str:
    """Return a single-line title for a view, shortened if needed."""
    line = f"{verb} {' '.join(subject.split())}"
    return line if len(line) <= TITLE_CHARACTERS else f"{line[:TITLE_CHARACTERS]} …"


def count(number: int, noun: str) -> str:
    """Return a count with its noun: `1 line`, `2 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_word(size: int) -> str:
    """Return a size in readable form: `512 bytes`, `3.4 KB`."""
    if size < 1000:
        return count(size, "byte")
    value = size / 1000
    for unit in ("KB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


_BLOB = "blob:"


async def read_source(path: str, context: ToolContext, limit: int) -> bytes | ToolOutput:
    """Return the content of a file or of `blob:<sha256>`, or a failed output if it can't be read or is larger than `limit`."""
    if not path.startswith(_BLOB):
        return await run_guarded(lambda: _read(paths_of(context), path, limit))
    try:
        data = await context.blobs.get(path.removeprefix(_BLOB), limit=limit + 1)
    except NotFound:
        return failed(f"{path!r} not found; use the name exactly as in the output")
    except MootError as error:
        return failed(error_text(error))
    return _bounded(path, data, limit)


def _read(paths: Paths, path: str, limit: int) -> bytes | ToolOutput:
    with paths.open_read(path) as stream:
        return _bounded(path, stream.read(limit + 1), limit)


def _bounded(path: str, data: bytes, limit: int) -> bytes | ToolOutput:
    return data if len(data) <= limit else failed(f"{path!r} is larger than {size_word(limit)}, the maximum for models")
