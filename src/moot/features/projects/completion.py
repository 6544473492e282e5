"""Completion of `@file`: find the files in a folder that match the typed text."""

from __future__ import annotations

import re
import threading
import time
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.tools.walk import walk

WALKED = 200_000
"""Maximum number of files to consider for completion."""
QUICK = 0.05
"""A folder that can be read within this number of seconds is read again for each request, so that new files are found immediately."""
MAX_AGE = 5.0
"""Number of seconds after which the index of a slower folder is refreshed."""
FOLDERS = 4
"""Maximum number of indexes to keep. If there are more, the least recently used index is dropped."""


def files_below(paths: Paths) -> list[str]:
    """Return all files and folders (with a trailing `/`) that are not ignored, depth first and sorted. This function blocks."""
    found: list[str] = []
    with suppress(MootError):  # the folder was removed or can't be read: there is nothing to complete
        for path, entry in walk(paths, "."):
            if entry.kind in ("file", "directory"):
                found.append(f"{path}/" if entry.kind == "directory" else path)
            if len(found) >= WALKED:
                break
    return found


class FileIndex:
    """The files of a folder, prepared for completion.

    All paths are in one text, shortest first, so that searching it finds the best matches first and can stop there.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._paths = sorted(files, key=lambda path: (len(path), path))
        lines = [path.lower().replace("\n", " ") for path in self._paths]
        self._text = "\n".join(["", *lines, ""])
        self._starts = array("Q")
        """Position of the line break before each path."""
        at = 0
        for line in lines:
            self._starts.append(at)
            at += len(line) + 1

    @classmethod
    def of(cls, paths: Paths) -> FileIndex:
        """Return the index of the files that are not ignored. This function blocks."""
        return cls(files_below(paths))

    def matches(self, typed: str, limit: int = 50) -> list[str]:
        """Return the best matches for the typed text: first paths that start with it, then paths whose file name starts with it, then
        paths that contain it, then paths that contain its letters in the same order.

        In each of these groups, shorter paths come first.
        """
        wanted = typed.lower().replace("\n", " ")
        word = re.escape(wanted)
        # match each letter as early as possible and never backtrack, so that many letters cost no more than one
        letters = "".join(f"[^{re.escape(letter)}\n]*+{re.escape(letter)}" for letter in wanted)
        whole = (rf"\n{word}", rf"/{word}[^/\n]*/?\n", word) if wanted in self._text else ()
        scattered = (rf"\n{letters}",) if all(letter in self._text for letter in wanted) else ()
        found: dict[int, None] = {}
        for pattern in (*whole, *scattered):
            for number in self._lines(re.compile(pattern)):
                found[number] = None
                if len(found) >= limit:
                    return [self._paths[number] for number in found]
        return [self._paths[number] for number in found]

    def _lines(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """Yield the index of each path with a match."""
        at = 0
        last = len(self._text) - 1  # the final line break belongs to no path
        while (match := pattern.search(self._text, at)) and match.start() < last:
            number = bisect_right(self._starts, match.start()) - 1
            yield number
            at = self._starts[number + 1] if number + 1 < len(self._starts) else last


class FileIndexes:
    """Indexes of the most recently used folders, for servers. All methods block and can be called from several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[FileIndex, float]] = OrderedDict()
        """For each folder that takes long to read, its index and the time at which the folder was read."""
        self._reading: set[str] = set()
        self._lock = threading.Lock()

    def find(self, paths: Paths, folder: str) -> tuple[FileIndex, bool]:
        """Return the folder's index, and whether the index is old, in which case `refresh` should be called after the response."""
        with self._lock:
            known = self._known.get(folder)
            if known is not None:
                self._known.move_to_end(folder)
                return known[0], time.monotonic() - known[1] > MAX_AGE
        return self._read(paths, folder), False

    def refresh(self, paths: Paths, folder: str) -> None:
        """Read the folder again, unless another thread is already doing so."""
        with self._lock:
            if folder in self._reading:
                return
            self._reading.add(folder)
        try:
            self._read(paths, folder)
        finally:
            with self._lock:
                self._reading.discard(folder)

    def _read(self, paths: Paths, folder: str) -> FileIndex:
        started = time.monotonic()
        index = FileIndex.of(paths)
        ended = time.monotonic()
        with self._lock:
            self._known.pop(folder, None)
            if ended - started > QUICK:
                self._known[folder] = index, ended
                if len(self._known) > FOLDERS:
                    self._known.popitem(last=False)
        return index
