"""The git branch and commit of a folder, read from files, because running git may execute programs from the repository's configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Standing", "standing"]

LONGEST = 64 * 1024
"""Maximum number of bytes to read from a file of the repository, except lists of packed references."""
PACKED = 4 * 1024 * 1024

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFERENCE = re.compile(r"refs/heads/[^\x00-\x20\x7f~^:?*\[\\]{1,250}")


@dataclass(frozen=True, slots=True)
class Standing:
    """Branch and commit, if any."""

    branch: str | None = None
    commit: str | None = None


def standing(folder: Path) -> Standing:
    """Return the folder's branch and commit. Both are None outside of a repository or if its files are invalid. Blocks."""
    place = _repository(folder)
    if place is None:
        return Standing()
    head = _text(place / "HEAD")
    if _COMMIT.fullmatch(head):
        return Standing(None, head)
    name = head.removeprefix("ref: ")
    if not _REFERENCE.fullmatch(name) or ".." in name:
        return Standing()
    return Standing(name.removeprefix("refs/heads/"), _commit(place, name))


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
    """Return the beginning of a regular file, or an empty string."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return ""
