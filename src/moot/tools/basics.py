"""What every tool starts from: the usual flags, failure as an output, file work in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, ValidationError

from moot.errors import MootError, UsageError
from moot.guard.paths import Paths
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput

__all__ = ["Defaults", "ToolSettings", "count", "failed", "guarded", "paths_of", "size_word", "title", "words"]

TITLE_CHARACTERS = 120

T = TypeVar("T")


class ToolSettings(BaseModel):
    """`tools.<name>` of the configuration; a tool without settings has these, which are none."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)  # a key that came by a variable may be all digits

    @classmethod
    def of(cls, name: str, given: JsonObject) -> Self:
        """The settings as they are given. Raises UsageError that names the key, and never what it holds."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(step) for step in ("tools", name, *first["loc"]))
            problem = UsageError(f"{where}: {first['msg']}", fix="moot config check")
        raise problem  # outside: what is being handled there quotes what was given


class Defaults:
    """The flags of a tool that is nothing special."""

    settings: type[BaseModel] = ToolSettings

    concurrent: bool = False
    idempotent: bool = False
    hidden: bool = False
    beta: bool = False
    badge: str = ""
    examples: tuple[JsonObject, ...] = ()


def paths_of(context: ToolContext) -> Paths:
    """The guard for the files that this call may touch."""
    return Paths(context.roots, context.directory)


def failed(text: str) -> ToolOutput:
    """The output of a call that came to nothing."""
    return ToolOutput(text, error=True)


def words(error: MootError) -> str:
    """An error as a model reads it."""
    return f"{error.message}; {error.fix}" if error.fix else error.message


async def guarded(work: Callable[[], T], *, abandon: bool = True) -> T | ToolOutput:
    """What the work gives, done in a thread; a refusal or a missing file is a failed output.

    A cancelled call does not wait for the thread, unless told otherwise: reading may finish unseen, writing may not.
    """
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=abandon)
    except MootError as error:
        return failed(words(error))
    except OSError as error:  # the disk or the network file system gave way in the middle of a file
        return failed(f"{error.filename or 'the file'}: {error.strerror or error}")


def title(verb: str, subject: str) -> str:
    """A view's title: one line, whatever the subject holds, and not a long one."""
    line = f"{verb} {' '.join(subject.split())}"
    return line if len(line) <= TITLE_CHARACTERS else f"{line[:TITLE_CHARACTERS]} …"


def count(number: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_word(size: int) -> str:
    """`512 bytes`, `3.4 KB`."""
    if size < 1000:
        return count(size, "byte")
    value = size / 1000
    for unit in ("KB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
