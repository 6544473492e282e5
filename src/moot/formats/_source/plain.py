"""A regular file, opened: a pipe in its place is not waited for, and a device not read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["HEAD", "head_of", "plain"]

HEAD = 64 << 10
"""Bytes by which a format knows its files."""


def plain(path: Path, *, links: bool = True, buffering: int = -1) -> BinaryIO:
    """The file, for reading; with `links` off its last name must be no link. Raises OSError, also for what is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
    return os.fdopen(descriptor, "rb", buffering=buffering)


def head_of(path: Path, size: int = HEAD, *, links: bool = True) -> bytes:
    """How a file begins; empty for what can't be read."""
    try:
        with plain(path, links=links) as file:
            return file.read(size)
    except OSError:
        return b""
