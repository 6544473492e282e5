"""What the file that a call would write holds now, for whoever decides about the call."""

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
"""A file that is larger is not compared line by line with what is to replace it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Arguments with what is known about what they would do."""

    arguments: bytes
    parts: tuple[AskedPart, ...] = ()
    fact: str = ""
    """Of the file that would be written: new, or what it replaces."""
    before: str | None = None
    """What stands in that file; None = nothing, or too much to compare."""


async def look(arguments: bytes, parts: tuple[AskedPart, ...], roots: Sequence[Path], directory: Path) -> Looked:
    """The arguments, with what the file that they name holds now."""
    value = object_of(arguments)
    path = value.get("path")
    if not isinstance(path, str) or not {"content", "edits"} & value.keys():
        return Looked(arguments, parts)
    verb = "replaces" if "content" in value else "has"
    fact, before = await anyio.to_thread.run_sync(partial(_before, roots, directory, path, verb))
    return Looked(arguments, parts, fact, before)


def object_of(arguments: bytes) -> JsonObject:
    """Arguments as an object; empty when they are none."""
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
