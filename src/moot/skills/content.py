"""The files of a skill: listing, hashing, reading and copying them within size limits. Links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from moot.errors import NotFound, Refused
from moot.guard.paths import Paths
from moot.skills.document import hidden_findings
from moot.types.canonical import Json, dumps
from moot.types.skill import SKILL_FILE, Finding

FILES = 2_000
"""Maximum number of files of a skill."""
BYTES = 64 << 20
"""Maximum total size of a skill's files, in bytes."""
FILE_BYTES = 1 << 20
"""Maximum size of a file that is shown to a model, in bytes."""
DEPTH = 12

PROGRAMS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe")
"""First bytes of files that the operating system can run directly."""

_SKIPPED = frozenset((".git", "__pycache__", ".DS_Store", "node_modules"))
"""Names of files and folders that are not part of a skill. They are neither hashed nor copied, so nothing in them runs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link in a skill's folder."""

    path: str
    is_link: bool
    size: int
    stamp: tuple[int, ...]
    """A value that changes with the file, even if its size and modification time are restored."""


def entries(folder: Path) -> list[Entry]:
    """Return the files and links in a skill's folder, sorted by path. Raise Refused if there are too many, OSError if it can't be read."""
    found: list[Entry] = []
    for entry in _walk(os.fspath(folder), "", 0):
        found.append(entry)
        if len(found) > FILES:
            raise Refused(f"{str(folder)!r} has more than {FILES:,} files, the maximum for a skill.")
    if sum(entry.size for entry in found) > BYTES:
        raise Refused(f"{str(folder)!r} is larger than {BYTES >> 20} MiB, the maximum for a skill.")
    return sorted(found, key=lambda entry: entry.path)


def _walk(folder: str, prefix: str, depth: int) -> Iterator[Entry]:
    if depth > DEPTH:
        raise Refused(f"{folder!r} is nested deeper than {DEPTH} folders, the maximum for a skill.")
    with os.scandir(folder) as listed:
        for item in listed:
            if item.name in _SKIPPED:
                continue
            if item.is_dir(follow_symlinks=False):
                yield from _walk(item.path, f"{prefix}{item.name}/", depth + 1)
                continue
            status = item.stat(follow_symlinks=False)
            is_link = stat.S_ISLNK(status.st_mode)
            if not is_link and not stat.S_ISREG(status.st_mode):
                raise Refused(f"{item.path!r} is neither a file nor a folder, so it can't be part of a skill.")
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            yield Entry(prefix + item.name, is_link, status.st_size, stamp)


def digest_of(folder: Path) -> str:
    """Return the hash of a skill's content: the paths and bytes of its files. Raise Refused or OSError."""

    def facts(entry: Entry) -> tuple[str, Json]:
        path = folder / entry.path
        return entry.path, {"link": str(path.readlink())} if entry.is_link else _hash(path)

    return content_digest(map(facts, entries(folder)))


def content_digest(files: Iterable[tuple[str, Json]]) -> str:
    """Return the digest of files, which are given by path and hash of the content, sorted by path.

    Permissions are not part of it, because archives and backups don't keep them.
    """
    total = sha256()
    for facts in files:
        total.update(dumps([*facts]))
    return total.hexdigest()


def is_skipped(name: str) -> bool:
    """Return whether a file or folder of this name is not part of a skill."""
    return name in _SKIPPED


def _hash(path: Path) -> str:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_file(folder: Path, name: str, limit: int = FILE_BYTES) -> bytes:
    """Return a file of a skill. Raise NotFound, or Refused if it is too large, a link, or outside of the folder."""
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused(f"{name!r} is not a file of the skill.", fix="Use a path in the skill's folder, such as references/guide.md.")
    if not (folder / name).exists():
        raise NotFound(f"The skill has no file {name!r}.")
    with Paths((folder,), folder, links=False).open_read(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{name!r} is larger than {limit >> 10} KiB.")
    return data


def copy_to(folder: Path, target: Path) -> None:
    """Copy the files of a skill into a new folder. Raise Refused if one is a link."""
    target.mkdir(parents=True)
    for entry in entries(folder):
        if entry.is_link:
            raise Refused(f"{entry.path!r} is a link, which skills with scripts and installed skills can't contain.")
        place = target / entry.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data := read_file(folder, entry.path, BYTES))
        place.chmod(0o700 if data.startswith(PROGRAMS) else 0o600)


def check_files(folder: Path) -> list[Finding]:
    """Return the findings about the files next to `SKILL.md`: links and hidden text. Raise Refused or OSError."""
    found: list[Finding] = []
    for entry in entries(folder):
        if entry.is_link:
            found.append(Finding(entry.path, 1, "A link. Links in skills are not followed.", is_error=False))
        elif entry.path != SKILL_FILE and entry.size <= FILE_BYTES:
            data = read_file(folder, entry.path)
            if b"\0" not in data:
                found += hidden_findings(entry.path, data.decode("utf-8", "replace"))
    return found
