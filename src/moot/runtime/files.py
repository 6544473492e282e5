"""Completion of `@file`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.tools.ignores import walk

__all__ = ["candidates", "files_below"]

WALKED = 20_000
"""Maximum number of files considered for completion."""


def files_below(paths: Paths) -> list[str]:
    """Return files and folders (with `/`) that are not ignored, in the order of the guard. Blocks."""
    found: list[str] = []
    try:
        for path, entry in walk(paths, "."):
            if entry.kind in ("file", "directory"):
                found.append(f"{path}/" if entry.kind == "directory" else path)
            if len(found) >= WALKED:
                break
    except MootError:  # the folder was removed or can't be read: there is nothing to complete
        pass
    return found


def candidates(typed: str, files: Sequence[str], limit: int = 50) -> list[str]:
    """Return the best matches: names with this prefix, then names that contain it, then names with its letters in this order."""
    wanted = typed.lower()
    letters = re.compile(".*".join(map(re.escape, wanted)))
    ranked: list[tuple[int, int, str]] = []
    for path in files:
        rank = _rank(wanted, path.lower(), letters)
        if rank is not None:
            ranked.append((rank, len(path), path))
    return [path for _, _, path in sorted(ranked)[:limit]]


def _rank(wanted: str, path: str, letters: re.Pattern[str]) -> int | None:
    if path.startswith(wanted):
        return 0
    if os.path.basename(path.rstrip("/")).startswith(wanted):  # noqa: PTH119  avoids thousands of path objects
        return 1
    if wanted in path:
        return 2
    return 3 if letters.search(path) else None
