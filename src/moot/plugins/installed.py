"""What installed packages declare for moot. Asked only where the built-in names do not settle a question."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from moot.plugins.registry import attribute

_METADATA = (".dist-info", ".egg-info")


def points(group: str) -> tuple[Any, ...]:
    """The entry points (importlib.metadata) of a group."""
    return tuple(attribute("importlib.metadata:entry_points")(group=group)) if _declared(group, tuple(sys.path)) else ()


@cache
def _declared(group: str, places: tuple[str, ...]) -> bool:
    """Whether any package may declare something in a group: a look at the files, for importlib.metadata costs five bare interpreters."""
    return any(_declares(group, Path(place or ".")) for place in dict.fromkeys(places))


def _declares(group: str, place: Path) -> bool:
    if place.is_file():  # a zip: only importlib.metadata looks into it
        return True
    try:
        folders = [entry.path for entry in os.scandir(place) if entry.name.endswith(_METADATA)]
    except OSError:
        return False
    return any(_names(group, Path(folder, "entry_points.txt")) for folder in folders)


def _names(group: str, file: Path) -> bool:
    try:
        return f"[{group}]".encode() in file.read_bytes()
    except OSError:
        return False
