"""Preview of the file that a call would write, for the person who decides about the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.tools.basics import count, size_word
from moot.types.approval import AskedPart
from moot.types.canonical import JsonObject, loads_exact

__all__ = ["Looked", "look", "object_of"]

COMPARED_BYTES = 200_000
"""Larger files are not compared with their new content."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The arguments of a call with what they would change."""

    arguments: bytes
    parts: tuple[AskedPart, ...] = ()
    fact: str = ""
    """A note that the file is new, or on what would be replaced."""
    before: str | None = None
    """Current content of the file. None = no file, or too large to compare."""


async def look(arguments: bytes, parts: tuple[AskedPart, ...], roots: Sequence[Path], directory: Path) -> Looked:
    """Return the arguments with the current content of the file that they name."""
    value = object_of(arguments)
    path = value.get("path")
    if not isinstance(path, str) or not {"content", "edits"} & value.keys():
        return Looked(arguments, parts)
    verb = "replaces" if "content" in value else "has"
    fact, before = await anyio.to_thread.run_sync(partial(_before, roots, directory, path, verb))
    return Looked(arguments, parts, fact, before)


def object_of(arguments: bytes) -> JsonObject:
    """Return the arguments as an object, or an empty one if they are not."""
    try:
        value = loads_exact(arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _before(roots: Sequence[Path], directory: Path, path: str, verb: str) -> tuple[str, str | None]:
    try:
        with Paths(tuple(roots), directory).open_read(path) as stream:
            data = stream.read(COMPARED_BYTES + 1)
            size = stream.seek(0, 2)
    except (MootError, OSError, ValueError) as error:
        new = not (directory / path).exists()
        return ("a new file" if new else str(error)), None
    if len(data) > COMPARED_BYTES or b"\0" in data:
        return f"{verb} {size_word(size)}", None
    text = data.decode("utf-8", "replace")
    return f"{verb} {count(len(text.splitlines()), 'line')}, {size_word(size)}", text
