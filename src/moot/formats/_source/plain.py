"""Regular files, opened without blocking on pipes and without reading devices."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["HEAD", "head_of", "plain"]

HEAD = 64 << 10
"""Number of bytes used to recognize a format."""


def plain(path: Path, *, links: bool = True, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading. Without `links`, the last path component must not be a link. Raise OSError if it is not a regular
    file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return os.fdopen(descriptor, "rb", buffering=buffering)


def head_of(path: Path, size: int = HEAD, *, links: bool = True) -> bytes:
    """Return the beginning of a file, or nothing if it can't be read."""
    try:
        with plain(path, links=links) as file:
            return file.read(size)
    except OSError:
        return b""
