"""Files that a source names: read when they are plain files where they have to be, and never anything else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from moot.formats._source.plain import plain

__all__ = ["beside"]


def beside(path: Path, *, inside: Path, limit: int) -> bytes | None:
    """The content of a regular file below a folder; None for what is not there, not plain, reached by a link, or larger than `limit`."""
    try:
        relative = Path(os.path.normpath(path)).relative_to(inside)
    except ValueError:
        return None
    if any((inside / Path(*relative.parts[:depth])).is_symlink() for depth in range(1, len(relative.parts))):
        return None
    with suppress(OSError, ValueError), plain(inside / relative, links=False) as file:
        return file.read() if os.fstat(file.fileno()).st_size <= limit else None
    return None
