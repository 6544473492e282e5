"""Facts about a folder: its git branch and commit, and completion of `@file`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moot.errors import MootError
from moot.guard.paths import Paths
from moot.tools.walk import walk

LONGEST = 64 * 1024
"""Maximum number of bytes to read from a file of the repository, except lists of packed references."""
PACKED = 4 * 1024 * 1024

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFERENCE = re.compile(r"refs/heads/[^\x00-\x20\x7f~^:?*\[\\]{1,250}")


@dataclass(frozen=True, slots=True)
class GitState:
    """Branch and commit, if any."""

    branch: str | None = None
    commit: str | None = None


def git_state(folder: Path) -> GitState:
    """Return the folder's branch and commit. Both are None outside of a repository or if the repository's files are invalid. Blocks."""
    place = _repository(folder)
    if place is None:
        return GitState()
    head = _text(place / "HEAD")
    if _COMMIT.fullmatch(head):
        return GitState(None, head)
    name = head.removeprefix("ref: ")
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return GitState()
    return GitState(name.removeprefix("refs/heads/"), _commit(place, name))


def _repository(folder: Path) -> Path | None:
    """Return the `.git` folder of the folder or its closest parent. In a linked work tree, `.git` is a file with its path."""
    for above in (folder, *folder.parents):
        place = above / ".git"
        if place.is_dir():
            return place
        if place.is_file():
            named = _text(place).removeprefix("gitdir: ")
            return (above / named) if named else None
    return None


def _commit(place: Path, name: str) -> str | None:
    shared = _text(place / "commondir")
    for home in (place, place / shared) if shared else (place,):
        commit = _text(home / name)
        if _COMMIT.fullmatch(commit):
            return commit
        for line in _text(home / "packed-refs", PACKED).splitlines():
            packed, _, known = line.partition(" ")
            if known == name and _COMMIT.fullmatch(packed):
                return packed
    return None


def _text(path: Path, limit: int = LONGEST) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return ""


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
