"""Completion of `@file`: the files of a folder that match what was typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.tools.walk import walk

WALKED = 20_000
"""Maximum number of files considered for completion."""


def files_below(paths: Paths) -> list[str]:
    """Return files and folders (with `/`) that are not ignored, in the order of the guard. Blocks."""
    found: list[str] = []
    with suppress(MootError):  # the folder was removed or can't be read: there is nothing to complete
        for path, entry in walk(paths, "."):
            if entry.kind in ("file", "directory"):
                found.append(f"{path}/" if entry.kind == "directory" else path)
            if len(found) >= WALKED:
                break
    return found


def candidates(typed: str, files: Sequence[str], limit: int = 50) -> list[str]:
    """Return the best matches: names with this prefix, then names that contain it, then names with its letters in this order."""
    wanted = typed.lower()
    letters = re.compile(".*".join(map(re.escape, wanted)))
    ranked: list[tuple[int, int, str]] = []
    for path in files:
        lowered = path.lower()
        if lowered.startswith(wanted):
            ranked.append((0, len(path), path))
        elif lowered.rstrip("/").rpartition("/")[2].startswith(wanted):
            ranked.append((1, len(path), path))
        elif letters.search(lowered):
            ranked.append((2 if wanted in lowered else 3, len(path), path))
    return [path for _, _, path in sorted(ranked)[:limit]]
