"""Base classes of formats that can only be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.files import files_below, read_head
from moot.formats.kit.json import parse_json
from moot.types.canonical import JsonObject
from moot.types.format import ExportedConversation, ExportFile

_LOOKED_AT = 20
"""Maximum number of files to examine in order to recognize a folder."""
_ENTRIES = 2_000
"""Maximum number of directory entries to list in order to find these files."""


class ReadOnly:
    """Base class of formats that can only be read."""

    name = ""
    suffix = ".jsonl"

    def write(self, exported: ExportedConversation) -> ExportFile:
        raise UsageError(f"Can't write conversations as {self.name!r}: this format is read-only.")


class ManyFiles(ReadOnly):
    """Base class of formats whose program stores one file for each conversation."""

    files: tuple[str, ...] = ()
    """Patterns (as for `Path.match`) for the files below a folder."""
    companion_names: tuple[str, ...] = ()
    """Names of additional files next to a conversation's file that are read together with it.

    `*` stands for the name of the conversation's file without its suffix.
    """
    stored_files: tuple[str, ...] = ()
    """Patterns for additional files that `read` needs; see `NamesFiles`."""
    depth = 3
    """Maximum depth of the folders to search for conversations."""
    sniffed_depth = 3
    """Maximum depth of the folders to search in order to recognize a folder as belonging to the format."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the path belongs to the format. A folder is recognized by a few of its files."""
        if head:
            return self.is_own(path, head)
        return path.is_dir() and any(
            bool(head := read_head(file)) and self.is_own(file, head) for file in islice(self._first(path), _LOOKED_AT)
        )

    def is_own(self, path: Path, head: bytes) -> bool:
        """Return whether a file that starts with `head` belongs to the format."""
        raise NotImplementedError

    def sources(self, folder: Path) -> Iterator[Path]:
        return (path for path in files_below(folder, depth=self.depth) if self._matches(path))

    def companions(self, path: Path) -> Iterator[Path]:
        return (path.with_name(name.replace("*", path.stem)) for name in self.companion_names)

    def _matches(self, path: Path) -> bool:
        return any(path.match(pattern) for pattern in self.files)

    def _first(self, folder: Path) -> Iterator[Path]:
        left = _ENTRIES
        queue = [(folder, self.sniffed_depth)]
        while queue and left > 0:
            place, deep = queue.pop()
            try:
                entries = sorted(os.scandir(place), key=lambda entry: os.fsencode(entry.name))
            except OSError:
                continue
            left -= len(entries)
            yield from filter(self._matches, (Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)))
            if deep > 1:
                queue += [(Path(entry.path), deep - 1) for entry in entries if entry.is_dir(follow_symlinks=False)]


def first_object(head: bytes) -> JsonObject:
    """Return the JSON object on the first line. Return an empty object if the line is incomplete or not a JSON object."""
    with suppress(ValueError):
        value = parse_json(head.lstrip().partition(b"\n")[0])
        return value if isinstance(value, dict) else {}
    return {}


def environment_folder(value: str | None, otherwise: Path) -> Path:
    """Return the path in an environment variable, with `~` expanded, or `otherwise` if the variable is unset or empty."""
    return Path(value).expanduser() if value else otherwise
