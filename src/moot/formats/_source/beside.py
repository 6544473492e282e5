"""Files referenced by a source, read only if they are regular files inside an allowed folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from moot.formats._source.plain import plain

__all__ = ["beside"]


def beside(path: Path, *, inside: Path, limit: int) -> bytes | None:
    """Return the content of a regular file below `inside`, or None if it is missing, reached by a symlink, or larger than `limit` bytes."""
    try:
        relative = Path(os.path.normpath(path)).relative_to(inside)
    except ValueError:
        return None
    if any((inside / Path(*relative.parts[:depth])).is_symlink() for depth in range(1, len(relative.parts))):
        return None
    with suppress(OSError, ValueError), plain(inside / relative, links=False) as file:
        return file.read() if os.fstat(file.fileno()).st_size <= limit else None
    return None
