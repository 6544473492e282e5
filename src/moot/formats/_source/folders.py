"""Regular files below a folder, without links, devices and pipes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files_below"]

_DEPTH = 32


def files_below(folder: Path, suffix: str = "", *, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield regular files with the suffix, sorted by name within each folder. Unreadable folders are skipped."""
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
