"""Shared basics of tools: their base classes, and access to files and blobs."""

from __future__ import annotations

from typing import Any, Self

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, ValidationError

from moot.errors import FenceLost, MootError, NotFound, Refused, StoreFull, UsageError
from moot.guard.paths import Paths
from moot.types.approval import Effect
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput, View

TITLE_CHARACTERS = 120


class ToolSettings(BaseModel):
    """The section `tools.<name>` of the configuration. This base class has no settings."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)  # a key from an environment variable may consist of digits

    @classmethod
    def of(cls, name: str, values: JsonObject) -> Self:
        """Return the validated settings. Raise UsageError, whose message names the key but never its value."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(step) for step in ("tools", name, *first["loc"]))
            problem = UsageError(f"{where}: {first['msg']}.", fix="Run 'moot config check' for details.")
        raise problem  # raised here because the exception above quotes the value


class BaseTool:
    """Base class of the built-in tools. It sets default attributes, and returns errors as failed outputs."""

    name: str
    description: str
    arguments: type[BaseModel]
    settings: type[BaseModel] = ToolSettings
    effects: frozenset[Effect]
    reads: frozenset[str] = frozenset()
    """Values of the argument `action` with which a call only reads, even if `effects` contains other effects."""
    concurrent: bool = False
    idempotent: bool = False
    hidden: bool = False
    beta: bool = False
    badge: str = ""
    needs_folder: bool = True
    """False if the tool neither uses files nor starts programs. Conversations without a folder get only such tools."""
    ends_run: bool = False
    """True if the run ends after the step that calls it."""
    examples: tuple[JsonObject, ...] = ()

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        """Run a call. An error becomes a failed output, unless the run can't continue."""
        try:
            return await self.call(arguments, context)
        except (FenceLost, StoreFull):
            raise
        except (MootError, OSError) as error:
            return ToolOutput(error_text(error), error=True)

    async def call(self, arguments: Any, context: ToolContext) -> ToolOutput:
        """Run a call. Tools implement this method; it may raise MootError and OSError."""
        raise NotImplementedError

    def doing(self, arguments: Any) -> View:
        """Return the view of a running call."""
        raise NotImplementedError

    def done(self, arguments: Any, output: ToolOutput) -> View:
        """Return the view of a finished call, which shows the output."""
        doing = self.doing(arguments)
        return View(doing.title, doing.detail, output.text)


class LookupTool(BaseTool):
    """Base class of tools that only look something up. Their calls may run concurrently, and again after a crash."""

    concurrent = True
    idempotent = True


def paths_of(context: ToolContext) -> Paths:
    """Return access to the files that this call may use."""
    return Paths(context.roots, context.directory)


def error_text(error: MootError | OSError) -> str:
    """Return an error as text for a model."""
    return error.advice() if isinstance(error, MootError) else f"{error.filename or 'The file'}: {error.strerror or error}."


def title(verb: str, subject: str) -> str:
    """Return a single-line title for a view, shortened if needed."""
    line = f"{verb} {' '.join(subject.split())}"
    return line if len(line) <= TITLE_CHARACTERS else f"{line[:TITLE_CHARACTERS]} …"


def count(number: int, noun: str) -> str:
    """Return a count with its noun: `1 line`, `2 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_word(size: int) -> str:
    """Format a size in bytes: `512 bytes`, `3.4 KB`."""
    if size < 1000:
        return count(size, "byte")
    value = size / 1000
    for unit in ("KB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


async def read_source(path: str, context: ToolContext, limit: int) -> bytes:
    """Return the content of a file or of `blob:<sha256>`. Raise MootError if it can't be read or is larger than `limit`."""

    def read() -> bytes:
        with paths_of(context).open_read(path) as stream:
            return stream.read(limit + 1)

    if path.startswith("blob:"):
        try:
            data = await context.blobs.get(path.removeprefix("blob:"), limit=limit + 1)
        except NotFound as error:
            raise NotFound(f"{path!r} not found.", fix="Use the name exactly as in the output.") from error
    else:
        data = await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    if len(data) > limit:
        raise Refused(f"{path!r} is larger than {size_word(limit)}, the maximum for models.")
    return data
