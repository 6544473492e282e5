"""Safe access to files of other programs: only regular files, without blocking on pipes or following links out of a folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

HEAD = 64 << 10
"""Number of bytes to read from a file in order to recognize its format."""


def open_regular(path: Path, *, links: bool = True, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading. Raise OSError if it is not a regular file or,
    if `links` is False, the last path component is a link.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    except ValueError as error:  # a name from a damaged record contains NUL or a lone surrogate
        raise OSError(errno.EINVAL, "not a valid path", os.fspath(path)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return os.fdopen(descriptor, "rb", buffering=buffering)


def read_head(path: Path, size: int = HEAD, *, links: bool = True) -> bytes:
    """Return the beginning of a file, or empty bytes if the file can't be read."""
    try:
        with open_regular(path, links=links) as file:
            return file.read(size)
    except OSError:
        return b""


def read_inside(path: Path, *, inside: Path, limit: int) -> bytes | None:
    """Return the content of a regular file below `inside`, or None if it is missing,
    reached through a symlink, or larger than `limit` bytes.
    """
    try:
        relative = Path(os.path.normpath(path)).relative_to(inside)
    except ValueError:
        return None
    if any((inside / Path(*relative.parts[:depth])).is_symlink() for depth in range(1, len(relative.parts))):
        return None
    with suppress(OSError, ValueError), open_regular(inside / relative, links=False) as file:
        return file.read() if os.fstat(file.fileno()).st_size <= limit else None
    return None


_DEPTH = 32


def files_below(folder: Path, suffix: str = "", *, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield the regular files with this suffix, sorted by name within each folder. Unreadable folders are skipped."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        if entry.is_file(follow_symlinks=False):
            if entry.name.endswith(suffix):
                yield folder / entry.name
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from files_below(folder / entry.name, suffix, depth=depth - 1)
