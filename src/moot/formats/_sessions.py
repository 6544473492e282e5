"""What the readers of other programs' sessions share: they never write, and know a folder of theirs by the files in it."""

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
"""Files of a folder that is asked about."""
_ENTRIES = 2_000
"""Names that are looked at for them."""

_FINISHES = {
    **dict.fromkeys(("stop", "end_turn", "STOP", "complete", "completed", "stop_sequence"), "stop"),
    **dict.fromkeys(("tool-calls", "tool_calls", "tool_call", "toolUse", "tool_use"), "tool-calls"),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS"), "length"),
    **dict.fromkeys(("content-filter", "content_filter", "refusal", "SAFETY"), "content-filter"),
    "error": "error",
}


class ReadOnly:
    """A format of a program that keeps its files for itself."""

    name = ""
    suffix = ".jsonl"

    def write(self, exported: ExportedConversation) -> Written:
        raise UsageError(f"conversations can't be written as {self.name!r}: files of that program are only read")


class _Reader(Protocol):
    def sniff(self, path: Path, head: bytes) -> bool: ...


def first_object(head: bytes) -> JsonObject | None:
    """What the first line says, when it is a whole JSON object."""
    line = head.lstrip().partition(b"\n")[0]
    with suppress(ValueError):
        value = parsed(line)
        return value if isinstance(value, dict) else None
    return None


def holds_some(reader: _Reader, folder: Path, *patterns: str, depth: int) -> bool:
    """Whether the first files of a folder that could be the reader's are. Of a large folder only a part is looked at."""
    return any(reader.sniff(path, head_of(path)) for path in islice(_first(folder, patterns, depth), _LOOKED_AT))


def _first(folder: Path, patterns: tuple[str, ...], depth: int) -> Iterator[Path]:
    left = _ENTRIES
    waiting = [(folder, depth)]
    while waiting and left > 0:
        place, deep = waiting.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: os.fsencode(entry.name))
        except OSError:
            continue
        left -= len(entries)
        paths = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
        yield from (path for path in paths if any(path.match(pattern) for pattern in patterns))
        if deep > 1:
            waiting += [(Path(entry.path), deep - 1) for entry in entries if entry.is_dir(follow_symlinks=False)]


def matching(folder: Path, *patterns: str, depth: int) -> Iterator[Path]:
    """The regular files below a folder whose paths end like one of these, as `Path.match` says it."""
    return (path for path in files_below(folder, depth=depth) if any(path.match(pattern) for pattern in patterns))


def environment_folder(value: str | None, otherwise: Path) -> Path:
    """What an environment variable names, with `~`; nothing and empty = the other one."""
    return Path(value).expanduser() if value else otherwise


def finish(reason: str) -> str | None:
    """A vendor's word for why a model stopped, in ours; None when there is none."""
    return _FINISHES.get(reason, "other") if reason else None
