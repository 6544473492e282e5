"""List, hash and read the files of a skill or a plugin within size limits. Links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from moot.errors import Refused
from moot.types.canonical import Json, dumps

FILES = 2_000
"""Maximum number of files in a skill or a plugin."""
BYTES = 64 << 20
"""Maximum total size of the files in a skill or a plugin, in bytes."""
DEPTH = 12

PROGRAMS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe")
"""First bytes of files that the operating system can run directly."""

SKIPPED = frozenset((".git", "__pycache__", ".DS_Store", "node_modules"))
"""Names of files and folders that are not part of a skill. They are neither hashed nor copied, so nothing in them runs."""

Files = Mapping[str, bytes]
"""Relative path → content."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link in a folder."""

    path: str
    is_link: bool
    size: int
    stamp: tuple[int, ...]
    """A value that changes if the file changes, even if its size and modification time are restored."""


def entries(folder: Path, skipped: Collection[str] = SKIPPED) -> list[Entry]:
    """Return the files and links in a folder, sorted by path. Raise Refused if there are too many, OSError if the folder can't be read."""
    found: list[Entry] = []
    for entry in _walk(os.fspath(folder), "", 0, skipped):
        found.append(entry)
        if len(found) > FILES:
            raise Refused(f"{str(folder)!r} has more than the maximum of {FILES:,} files.")
    if sum(entry.size for entry in found) > BYTES:
        raise Refused(f"{str(folder)!r} is larger than the maximum of {BYTES >> 20} MiB.")
    return sorted(found, key=lambda entry: entry.path)


def _walk(folder: str, prefix: str, depth: int, skipped: Collection[str]) -> Iterator[Entry]:
    if depth > DEPTH:
        raise Refused(f"{folder!r} is nested deeper than the maximum of {DEPTH} folders.")
    with os.scandir(folder) as listed:
        for item in listed:
            if item.name in skipped:
                continue
            if item.is_dir(follow_symlinks=False):
                yield from _walk(item.path, f"{prefix}{item.name}/", depth + 1, skipped)
                continue
            status = item.stat(follow_symlinks=False)
            is_link = stat.S_ISLNK(status.st_mode)
            if not is_link and not stat.S_ISREG(status.st_mode):
                raise Refused(f"{item.path!r} is neither a file nor a folder, so it can't be part of a skill or a plugin.")
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            yield Entry(prefix + item.name, is_link, status.st_size, stamp)


def parents_of(path: str) -> Iterator[str]:
    """Yield the folders above a relative path, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:at]) for at in range(1, len(parts)))


def stamps_of(listed: Iterable[Entry]) -> tuple[object, ...]:
    """Return a value that changes if one of the files changes."""
    return tuple((entry.path, entry.is_link, entry.stamp) for entry in listed)


def digest_of(folder: Path, skipped: Collection[str] = SKIPPED) -> str:
    """Return the hash of a folder's content: the paths and bytes of its files.

    Raise Refused if there are too many files, OSError if a file can't be read.
    """

    def facts(entry: Entry) -> tuple[str, Json]:
        path = folder / entry.path
        return entry.path, {"link": str(path.readlink())} if entry.is_link else _hash(path)

    return content_digest(map(facts, entries(folder, skipped)))


def digest_of_files(files: Files) -> str:
    """Return the digest of a folder that contains exactly these files."""
    return content_digest((path, sha256(data).hexdigest()) for path, data in sorted(files.items()))


def content_digest(files: Iterable[tuple[str, Json]]) -> str:
    """Return the digest of files, each given as its path and the hash of its content, sorted by path.

    File permissions are not included, because archives and backups don't keep them.
    """
    total = sha256()
    for facts in files:
        total.update(dumps([*facts]))
    return total.hexdigest()


def _hash(path: Path) -> str:
    with os.fdopen(_opened(path), "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_all(folder: Path, listed: Iterable[Entry]) -> Files:
    """Return the content of these files. Raise Refused if a file is a link or has grown, OSError if it can't be read."""
    found: dict[str, bytes] = {}
    for entry in listed:
        if entry.is_link:
            raise Refused(f"{entry.path!r} is a link, which can't be installed.")
        with os.fdopen(_opened(folder / entry.path), "rb") as file:
            found[entry.path] = file.read(entry.size + 1)
        if len(found[entry.path]) > entry.size:
            raise Refused(f"{entry.path!r} was changed while it was being read.")
    return found


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
