"""Files that a source names: read when they are plain files where they have to be, and never anything else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["beside"]


def beside(path: Path, *, inside: Path, limit: int) -> bytes | None:
    """The content of a regular file below a folder; None for what is not there, not plain, reached by a link, or larger than `limit`."""
    try:
        relative = Path(os.path.normpath(path)).relative_to(inside)
    except ValueError:
        return None
    if any((inside / Path(*relative.parts[:depth])).is_symlink() for depth in range(1, len(relative.parts))):
        return None
    try:
        descriptor = os.open(inside / relative, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(about.st_mode) and about.st_size <= limit else None
