"""Shared code of the readers of other programs' sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

from moot.errors import UsageError
from moot.formats._source.folders import files_below
from moot.formats._source.pieces import parsed
from moot.formats._source.plain import head_of
from moot.types.canonical import JsonObject
from moot.types.format import ExportedConversation, Written

__all__ = ["ReadOnly", "environment_folder", "finish", "first_object", "holds_some", "matching"]

_LOOKED_AT = 20
"""Number of files examined to recognize a folder."""
_ENTRIES = 2_000
"""Maximum number of directory entries examined."""

_FINISHES = {
    **dict.fromkeys(("stop", "end_turn", "STOP", "complete", "completed", "stop_sequence"), "stop"),
    **dict.fromkeys(("tool-calls", "tool_calls", "tool_call", "toolUse", "tool_use"), "tool-calls"),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("content-filter", "content_filter", "refusal", "SAFETY"), "content-filter"),
    "error": "error",
}


class ReadOnly:
    """Base class of formats that can only be read."""

    name = ""
    suffix = ".jsonl"

    def write(self, exported: ExportedConversation) -> Written:
        raise UsageError(f"Can't write conversations as {self.name!r}: this format is read-only.")


class _Reader(Protocol):
    def sniff(self, path: Path, head: bytes) -> bool: ...


def first_object(head: bytes) -> JsonObject | None:
    """Return the object on the first line, or None if it is incomplete or not an object."""
    line = head.lstrip().partition(b"\n")[0]
    with suppress(ValueError):
        value = parsed(line)
        return value if isinstance(value, dict) else None
    return None


def holds_some(reader: _Reader, folder: Path, *patterns: str, depth: int) -> bool:
    """Return whether one of the first matching files of a folder belongs to the reader. Only part of a large folder is examined."""
    return any(reader.sniff(path, head_of(path)) for path in islice(_first(folder, patterns, depth), _LOOKED_AT))


def _first(folder: Path, patterns: tuple[str, ...], depth: int) -> Iterator[Path]:
    left = _ENTRIES
    queue = [(folder, depth)]
    while queue and left > 0:
        place, deep = queue.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: os.fsencode(entry.name))
        except OSError:
            continue
        left -= len(entries)
        paths = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
        yield from (path for path in paths if any(path.match(pattern) for pattern in patterns))
        if deep > 1:
            queue += [(Path(entry.path), deep - 1) for entry in entries if entry.is_dir(follow_symlinks=False)]


def matching(folder: Path, *patterns: str, depth: int) -> Iterator[Path]:
    """Yield the regular files below a folder that match one of the patterns (`Path.match`)."""
    return (path for path in files_below(folder, depth=depth) if any(path.match(pattern) for pattern in patterns))


def environment_folder(value: str | None, otherwise: Path) -> Path:
    """Return the path in an environment variable with `~` expanded, or `otherwise` if it is unset or empty."""
    return Path(value).expanduser() if value else otherwise


def finish(reason: str) -> str | None:
    """Map a vendor's finish reason to moot's. Return None if it is empty."""
    return _FINISHES.get(reason, "other") if reason else None
